//! The pages that show tables, and their plots. Tables are between `<!-- report:TABLE -->` and `<!-- /report -->`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::files;
use super::tables::{self, Shown};

const BEGIN: &str = "<!-- report:";
const BEGIN_ENDS: &str = " -->\n";
const END: &str = "<!-- /report -->";

/// A page, and what it should be.
pub(super) struct Page {
    /// Where it is.
    pub path: PathBuf,
    /// Its text.
    pub now: String,
    /// Its text with the tables of today.
    pub wanted: String,
}

/// All pages. Each table is on at least one of them.
pub(super) fn read(root: &Path) -> Result<Vec<Page>> {
    let tables = tables::read(&root.join("lab/results"))?;
    let mut paths = vec![root.join("docs/benchmarks.md")];
    paths.extend(files(&root.join("lab/notes"), "md")?);
    let mut shown = BTreeSet::new();
    let mut pages = Vec::new();
    for path in paths {
        let named = || path.display().to_string();
        let now = std::fs::read_to_string(&path).with_context(named)?;
        let wanted = filled(&now, &tables, &mut shown).with_context(named)?;
        pages.push(Page { path, now, wanted });
    }
    for name in tables.keys() {
        ensure!(shown.contains(name), "no page shows the table {name} of lab/results");
    }
    for (name, svg) in tables.into_values().filter_map(|table| table.picture) {
        let path = root.join("docs/pictures").join(name);
        let now = std::fs::read_to_string(&path).unwrap_or_default();
        pages.push(Page { path, now, wanted: svg });
    }
    Ok(pages)
}

fn filled(
    page: &str,
    tables: &BTreeMap<String, Shown>,
    shown: &mut BTreeSet<String>,
) -> Result<String> {
    let (mut out, mut rest) = (String::new(), page);
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (name, after) = after.split_once(BEGIN_ENDS).context("a marker has no end")?;
        let table = tables.get(name).with_context(|| format!("lab/results has no table {name}"))?;
        let (old, behind) =
            after.split_once(END).with_context(|| format!("no `{END}` behind {name}"))?;
        ensure!(!old.contains(BEGIN), "no `{END}` behind {name}");
        out += before;
        out += BEGIN;
        out += name;
        out += BEGIN_ENDS;
        out += &table.markdown;
        out += END;
        shown.insert(name.to_owned());
        rest = behind;
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(page: &str) -> Result<String> {
        let tables = [("a", "| 1 |\n"), ("b", "| 2 |\n")];
        let tables = tables.map(|(name, text)| {
            (name.to_owned(), Shown { markdown: text.to_owned(), picture: None })
        });
        filled(page, &tables.into(), &mut BTreeSet::new())
    }

    #[test]
    fn what_is_between_markers_is_written_anew_and_nothing_else() {
        let page = "x\n<!-- report:b -->\n| old |\n<!-- /report -->\ny\n<!-- report:a -->\n<!-- /report -->\n";
        let wanted = "x\n<!-- report:b -->\n| 2 |\n<!-- /report -->\ny\n<!-- report:a -->\n| 1 |\n<!-- /report -->\n";
        assert_eq!(fill(page).unwrap(), wanted);
        assert_eq!(fill(wanted).unwrap(), wanted);
    }

    #[test]
    fn markers_that_do_not_fit_are_refused() {
        for wrong in [
            "<!-- report:c -->\n<!-- /report -->",
            "<!-- report:a -->\n| 1 |\n",
            "<!-- report:a -->\n<!-- report:b -->\n<!-- /report -->",
        ] {
            assert!(fill(wrong).is_err(), "{wrong}");
        }
    }
}
