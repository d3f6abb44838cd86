//! Structures of counts that are added field by field. The macro is public for those of reports.

/// Declares a structure whose fields are all counts, with `add` and `named`.
#[macro_export]
macro_rules! sums {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$field_about:meta])* $field:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $($(#[$field_about])* pub $field: u64,)*
        }

        impl $name {
            /// Names of the fields with their counts, in order.
            #[allow(dead_code, reason = "not all of them are shown as a list")]
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }

            /// Adds another one, field by field.
            pub fn add(&mut self, other: &$name) {
                $(self.$field += other.$field;)*
            }
        }
    };
}
