//! Links between documents, and what documents name in the repository.

use crate::{guides, root};

#[test]
fn links_lead_somewhere() {
    let pages = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].map(|name| root().join(name));
    let mut broken = String::new();
    for page in pages.into_iter().chain(guides()) {
        let text = std::fs::read_to_string(&page).expect("a page");
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.starts_with("http") {
                continue;
            }
            let directory = page.parent().expect("a directory");
            if !directory.join(file).exists() {
                broken.push_str(&format!("{}: {target}\n", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{broken}");
}
