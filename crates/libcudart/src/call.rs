//! How a function of the C interface is written down.
//!
//! A program calls it by the C convention with whatever it has: null pointers, handles of things that are gone. Addresses where a result goes are
//! [`Out`](crate::types::Out)s, so that null is seen and nothing is read; handles are numbers that the driver looks up.

/// Functions of the C interface: name, parameters, body. The body ends in an [`Answer`](crate::error::Answer); an error becomes the last error of
/// the thread.
///
/// After the name may stand a second one in `/`: the same for programs whose default stream is one for each thread. Then the first name in the list
/// of parameters after `;` is the stream: a parameter (`; stream: u64`), or the default stream that the body works in (`; on stream`). Where the stream is the
/// first parameter, it stands before the others: `in stream: u64; ...`.
macro_rules! calls {
    () => {};
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $(#[$meta])*
        #[doc = concat!("`", stringify!($name), "` of the runtime API.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $ty),*) -> u32 {
            crate::error::answer(stringify!($name), move || $body)
        }
        calls! { $($rest)* }
    };
    ($(#[$meta:meta])* fn $name:ident / $twin:ident($($arg:ident: $ty:ty),*; $stream:ident: u64) $body:block $($rest:tt)*) => {
        calls! {
            $(#[$meta])* fn $name($($arg: $ty,)* $stream: u64) $body
            $(#[$meta])* fn $twin($($arg: $ty,)* $stream: u64) {
                let $stream = crate::stream::per_thread($stream);
                $body
            }
            $($rest)*
        }
    };
    ($(#[$meta:meta])* fn $name:ident / $twin:ident(in $stream:ident: u64; $($arg:ident: $ty:ty),* $(,)?) $body:block $($rest:tt)*) => {
        calls! {
            $(#[$meta])* fn $name($stream: u64, $($arg: $ty),*) $body
            $(#[$meta])* fn $twin($stream: u64, $($arg: $ty),*) {
                let $stream = crate::stream::per_thread($stream);
                $body
            }
            $($rest)*
        }
    };
    ($(#[$meta:meta])* fn $name:ident / $twin:ident($($arg:ident: $ty:ty),*; on $stream:ident) $body:block $($rest:tt)*) => {
        calls! {
            $(#[$meta])* fn $name($($arg: $ty),*) {
                let $stream = crate::stream::LEGACY;
                $body
            }
            $(#[$meta])* fn $twin($($arg: $ty),*) {
                let $stream = crate::stream::PER_THREAD;
                $body
            }
            $($rest)*
        }
    };
    // One name with two signatures: the version stands before it.
    ($(#[$meta:meta])* in $version:literal fn $name:ident as $rust:ident($($arg:ident: $ty:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $(#[$meta])*
        #[doc = concat!("`", stringify!($name), "` of version ", $version, " of the runtime API.")]
        #[unsafe(export_name = concat!("handloom_", $version, "_", stringify!($name)))]
        pub extern "C" fn $rust($($arg: $ty),*) -> u32 {
            crate::error::answer(stringify!($name), move || $body)
        }
        calls! { $($rest)* }
    };
}
