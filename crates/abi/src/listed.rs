//! Enums that know their variants, and the names of these.

/// An enum of variants without fields, and `ALL`, which lists them in their order: a list
/// beside the enum could lack one. With a name behind each variant, `as_str` gives it.
#[macro_export]
macro_rules! listed {
    (
        $(#[$about:meta])*
        $scope:vis enum $name:ident {
            $($(#[$what:meta])* $variant:ident $(= $number:literal)? => $text:literal),* $(,)?
        }
    ) => {
        $crate::listed! {
            $(#[$about])*
            $scope enum $name { $($(#[$what])* $variant $(= $number)?),* }
        }

        impl $name {
            /// The name as printed, which scripts may rely on.
            $scope fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
        }
    };
    (
        $(#[$about:meta])*
        $scope:vis enum $name:ident {
            $($(#[$what:meta])* $variant:ident $(= $number:literal)?),* $(,)?
        }
    ) => {
        $(#[$about])*
        $scope enum $name {
            $($(#[$what])* $variant $(= $number)?),*
        }

        impl $name {
            /// All of them, in this order.
            $scope const ALL: [$name; [$(stringify!($variant)),*].len()] = [$($name::$variant),*];
        }
    };
}
