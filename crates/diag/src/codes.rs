//! The table of diagnostic codes. One row a code; text of messages is where the fault is found.

macro_rules! codes {
    ($($name:ident $code:literal $title:literal)*) => {
        /// A row of the code table.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $title] $name,)* }

        impl Code {
            /// All rows.
            pub const ALL: &'static [Code] = &[$(Code::$name),*];
            /// The stable name, as `E0301`.
            pub fn name(self) -> &'static str { match self { $(Code::$name => $code),* } }
            /// What it is about.
            pub fn title(self) -> &'static str { match self { $(Code::$name => $title),* } }
        }
    };
}

codes! {
    Syntax "E0101" "text that is not PTX"
    Literal "E0102" "a malformed literal"
    Encoding "E0103" "bytes that are not text"
    Missing "E0104" "a required directive is missing"
    Foreign "E0105" "a file that holds no PTX"
    Unknown "E0201" "a name that is not declared"
    Duplicate "E0202" "a name declared twice"
    WrongKind "E0203" "a name of the wrong kind"
    NoForm "E0301" "an instruction form that does not exist"
    OperandCount "E0302" "the wrong number of operands"
    OperandType "E0303" "an operand of the wrong type"
    OperandKind "E0304" "an operand of the wrong kind"
    LiteralType "E0305" "a literal of the wrong type"
    Illegal "E0306" "a combination that the manual forbids"
    Opcode "E0307" "an opcode that does not exist"
    Gate "E0401" "needs another target or version"
    Target "E0402" "an unknown target or version"
    Layout "E0501" "a size, alignment or initialiser that does not fit"
    Link "E0502" "symbols of several modules that do not fit together"
    Unsupported "E0901" "not supported yet"
    WVersion "W0401" "a version newer than the newest known one"
    WForbidden "W0301" "accepted though the manual forbids it"
    WLiteral "W0102" "a literal that is cut to its type"
    WElements "W0601" "an argument whose elements have another type than the kernel reads"
}
