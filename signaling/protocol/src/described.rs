//! Enums that the reference describes by their doc comments.

/// Declares an enum, a list of its values, and a method for the text of a value's doc comment.
#[macro_export]
macro_rules! described {
    (
        $(#[$attribute:meta])*
        $visible:vis enum $name:ident { $($(#[doc = $line:literal])+ $value:ident,)+ }
    ) => {
        $(#[$attribute])*
        $visible enum $name { $($(#[doc = $line])+ $value,)+ }

        impl $name {
            /// All values, in the order of the documentation.
            $visible const ALL: &'static [$name] = &[$($name::$value,)+];

            /// What the documentation says of this value, in one line.
            $visible fn description(self) -> &'static str {
                match self { $($name::$value => concat!($($line),+).trim_start(),)+ }
            }
        }
    };
}
