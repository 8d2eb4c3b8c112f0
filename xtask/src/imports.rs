//! The whole paths that a file's `use` declarations bring into it.

/// A path that a `use` declaration brings in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Import {
    /// The whole path; for a glob, that of its module.
    pub path: String,
    /// The name that the code uses; `None` for a glob.
    pub name: Option<String>,
}

impl Import {
    /// Whether code with this import reaches an item, given by its whole path. Either the import is of the item or of
    /// a part of it, or the code goes on from the import to it.
    pub(crate) fn reaches(&self, code: &str, item: &str) -> bool {
        if is_at_or_below(&self.path, item) {
            return true;
        }
        let Some(rest) = item.strip_prefix(&self.path).and_then(|rest| rest.strip_prefix("::"))
        else {
            return false;
        };
        match &self.name {
            Some(name) => has_path(code, &format!("{name}::{rest}")),
            None => has_path(code, rest),
        }
    }
}

/// Whether a path is that of an item, or of something in it.
fn is_at_or_below(path: &str, item: &str) -> bool {
    path.strip_prefix(item).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Whether code names a path that is no part of a longer name. A path before it with `::` does not count: it may be
/// the crate's name.
pub(crate) fn has_path(code: &str, path: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(path).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + path.len()..].chars().next();
        // A name with `!` behind it is a macro of that name.
        !before.is_some_and(part_of_name) && !after.is_some_and(|c| part_of_name(c) || c == '!')
    })
}

/// All imports of code without comments.
pub(crate) fn imports(code: &str) -> Vec<Import> {
    let mut found = Vec::new();
    for (at, word) in code.match_indices("use ") {
        // A declaration begins a line, maybe after `pub` or `pub(crate)`.
        let line = code[..at].rsplit('\n').next().unwrap_or_default().trim();
        if !(line.is_empty() || line.starts_with("pub")) {
            continue;
        }
        let tree = &code[at + word.len()..];
        let tree = &tree[..tree.find(';').unwrap_or(tree.len())];
        expand("", tree, &mut found);
    }
    found
}

/// Adds the paths of a tree of a declaration that is below `prefix`.
fn expand(prefix: &str, tree: &str, found: &mut Vec<Import>) {
    let tree = tree.trim();
    if tree.is_empty() {
        return;
    }
    if let Some((head, rest)) = tree.split_once('{') {
        let head = join(prefix, head.trim().trim_end_matches("::"));
        let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
        for part in parts(inner) {
            expand(&head, part, found);
        }
        return;
    }
    let (path, alias) = match tree.split_once(" as ") {
        Some((path, alias)) => (path.trim(), Some(alias.trim())),
        None => (tree, None),
    };
    if let Some(module) = path.strip_suffix('*') {
        let path = join(prefix, module.trim_end_matches("::"));
        found.push(Import { path, name: None });
        return;
    }
    let path = match path {
        "self" => prefix.to_owned(),
        path => join(prefix, path),
    };
    let name = alias.unwrap_or_else(|| path.rsplit("::").next().unwrap_or(&path)).to_owned();
    found.push(Import { path, name: Some(name) });
}

/// The parts between the commas of a list, which may contain lists.
fn parts(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}

fn join(prefix: &str, path: &str) -> String {
    let path = path.trim_start_matches("::");
    if prefix.is_empty() || path.is_empty() {
        return format!("{prefix}{path}");
    }
    format!("{prefix}::{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(code: &str) -> Vec<String> {
        imports(code).into_iter().map(|import| import.path).collect()
    }

    #[test]
    fn trees_are_expanded_over_lines_with_their_aliases() {
        let code = "pub(crate) use std::{\n    fs,\n    net::{self, TcpStream as Stream},\n};\nuse ::tokio::sync::*;\n";
        let all = ["std::fs", "std::net", "std::net::TcpStream", "tokio::sync"];
        assert_eq!(paths(code), all);
        let names: Vec<_> = imports(code).into_iter().map(|import| import.name).collect();
        assert_eq!(names[2..], [Some("Stream".to_owned()), None]);
        assert_eq!(
            paths("let cause = 1; // not to use it;\nlet a = \"we use std::fs;\";"),
            [""; 0]
        );
    }

    #[test]
    fn an_item_is_reached_by_its_module_by_an_alias_or_by_a_glob() {
        let reaches = |code: &str| {
            imports(code).iter().any(|import| import.reaches(code, "std::net::TcpStream"))
        };
        assert!(reaches("use std::net::TcpStream;\n"));
        assert!(reaches("use std::net;\nfn a() { net::TcpStream::connect() }"));
        assert!(reaches("use std::{net as n};\nfn a(stream: n::TcpStream) {}"));
        assert!(reaches("use std::net::*;\nfn a(stream: TcpStream) {}"));
        assert!(!reaches("use std::net;\nfn a(at: net::SocketAddr) {}"));
        assert!(!reaches("use std::net::*;\nfn a(stream: MyTcpStream) {}"));
    }

    #[test]
    fn a_path_is_no_part_of_a_name_and_no_macro() {
        assert!(has_path("let v = std::env::var(\"A\");", "std::env"));
        assert!(!has_path("let v = std::env!(\"A\");", "std::env"));
        assert!(!has_path("my_tokio::run()", "tokio"));
    }
}
