//! Enums that know their variants.

/// An enum of variants without fields, and `ALL`, which lists them in their order: a list
/// beside the enum could lack one.
#[macro_export]
macro_rules! listed {
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
