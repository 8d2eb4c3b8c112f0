//! Lays out a declaration for readers: one field a line, comments on one line where they fit, members of a union below
//! each other. A test compares the written file.

/// The declaration in its layout. Only spaces, separators and quotes of names change.
pub(super) fn laid_out(declared: &str) -> String {
    let mut out = String::new();
    let mut depth = 0;
    let mut rest = declared;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("/**") {
            let (comment, after) = after.split_once("*/").unwrap_or((after, ""));
            push_comment(&mut out, comment, depth);
            rest = after.trim_start();
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '{' => {
                depth += 1;
                out.push('{');
                line(&mut out, depth);
                rest = rest.trim_start();
            }
            '}' => {
                depth -= 1;
                out.truncate(out.trim_end().len());
                if !out.ends_with([';', '{']) {
                    out.push(';');
                }
                line(&mut out, depth);
                out.push('}');
            }
            ',' if depth > 0 => {
                out.push(';');
                line(&mut out, depth);
                rest = rest.trim_start();
            }
            '|' if depth == 0 => {
                out.truncate(out.trim_end().len());
                line(&mut out, 1);
                out.push('|');
            }
            c => out.push(c),
        }
    }
    out.replace("\"type\":", "type:")
}

fn push_comment(out: &mut String, comment: &str, depth: usize) {
    let lines: Vec<&str> =
        comment.lines().map(|l| l.trim().trim_start_matches('*').trim()).collect();
    let text = lines.join(" ");
    out.push_str("/** ");
    out.push_str(text.trim());
    out.push_str(" */");
    line(out, depth);
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
}
