//! Counts of the hot routines, each listed once: a field's name is the counter's, by which it is read and printed.

/// Makes a struct of counts that the hot routines have by these names (`rings::COUNTERS`). A count that is a reason
/// has it as text, for people.
macro_rules! counts {
    (
        $(#[$about:meta])*
        pub struct $name:ident { $($(#[$what:meta])* $count:ident $(=> $reason:literal)?),* $(,)? }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct $name { $($(#[$what])* pub $count: u64),* }

        impl $name {
            /// Their names, in this order.
            pub const NAMES: [&'static str; [$(stringify!($count)),*].len()] = [$(stringify!($count)),*];

            /// The counts that `counter` gives by name.
            pub fn read(counter: impl Fn(&str) -> Option<u64>) -> $name {
                $name { $($count: counter(stringify!($count)).unwrap_or(0)),* }
            }

            /// What was counted after `before`.
            #[must_use]
            pub fn since(self, before: $name) -> $name {
                $name { $($count: self.$count - before.$count),* }
            }

            /// What was counted for each reason that has occurred, for people.
            pub fn reasons(&self) -> String {
                let reasons: [&[(&str, u64)]; $name::NAMES.len()] =
                    [$(&[$(($reason, self.$count))?]),*];
                let seen = reasons.concat().into_iter().filter(|(_, count)| *count > 0);
                let seen: Vec<String> = seen.map(|(why, count)| format!("{why} {count}")).collect();
                seen.join(", ")
            }

            /// By name.
            pub fn list(&self) -> [(&'static str, u64); $name::NAMES.len()] {
                [$((stringify!($count), self.$count)),*]
            }
        }
    };
}
pub(crate) use counts;

#[cfg(test)]
mod tests {
    use crate::packets::rings::COUNTERS;
    use crate::stages::aggregate::AggregateCounts;
    use crate::stages::offload::OffloadCounts;

    #[test]
    fn each_is_one_that_the_hot_routines_have() {
        let all = [AggregateCounts::NAMES.as_slice(), &OffloadCounts::NAMES].concat();
        for name in all {
            assert!(COUNTERS.contains(&name), "{name}");
        }
    }

    #[test]
    fn each_is_read_and_listed_by_its_own_name() {
        let number = |name: &str| COUNTERS.iter().position(|counter| *counter == name);
        let counter = |name: &str| number(name).map(|at| at as u64 + 1);
        let counts = AggregateCounts::read(counter);
        for (name, count) in counts.list() {
            assert_eq!(Some(count), counter(name), "{name}");
        }
        assert_eq!(counts.since(counts), AggregateCounts::default());
        assert_eq!(counts.since(AggregateCounts::default()), counts);
        let some = AggregateCounts {
            merged: 7,
            flush_order: 2,
            flush_end: 1,
            ..AggregateCounts::default()
        };
        assert_eq!(some.reasons(), "the poll 1, another order 2");
    }
}
