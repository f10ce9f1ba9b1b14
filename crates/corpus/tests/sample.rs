//! A sample of `make corpus`: all Ethernet modules for both targets take too long for
//! every test run, so this takes one in eight.

use corpus::ModuleOutcome;
use svm_rewrite::Target;

#[test]
fn ethernet_modules_are_accepted_for_both_targets() {
    let modules = filetests::kernel("modules");
    let all = corpus::modules(&modules, "drivers/net/ethernet").expect("the kernel's modules");
    assert!(all.len() > 100, "the package has Ethernet modules");
    let sample: Vec<_> = all.into_iter().step_by(8).collect();
    for target in [Target::Hypervisor, Target::Linux] {
        let tally = corpus::run(&sample, target, 2, &|_, _| {});
        assert_eq!(tally.modules.len(), sample.len());
        for (path, outcome) in &tally.modules {
            let accepted = matches!(outcome, ModuleOutcome::Accepted { .. });
            assert!(accepted, "{} for {target:?}: {outcome:?}", path.display());
        }
    }
}
