//! Characters that a name must not have: those that do not show, that reorder the text around them, or that cover it.
//!
//! Two names that look alike should be one, as far as single characters go. So names have no controls, no marks of
//! direction, no invisible letters, fillers or tags, and at most [`MARKS`] marks on a letter. Invisible characters that
//! join letters or emoji may stay where their effect is seen. That is in emoji of several characters, in scripts whose
//! letters join (RFC 5892 Appendix A), and after an emoji to which they give colours. (Letters of different scripts
//! that look alike are not looked for: identities by access tokens tell people apart.)

use icu_properties::props::{
    CanonicalCombiningClass, DefaultIgnorableCodePoint, EmojiModifier, ExtendedPictographic,
    GeneralCategory, JoiningType,
};
use icu_properties::{CodePointMapData, CodePointSetData};

/// Maximum number of marks on one letter: Tibetan and pointed Hebrew have this many.
const MARKS: usize = 4;

/// ZERO WIDTH NON-JOINER.
const NON_JOINER: char = '\u{200c}';
/// ZERO WIDTH JOINER.
const JOINER: char = '\u{200d}';
/// VARIATION SELECTOR-15: shows the character before it as text.
const AS_TEXT: char = '\u{fe0e}';
/// VARIATION SELECTOR-16: shows the character before it as an emoji.
const AS_EMOJI: char = '\u{fe0f}';
/// COMBINING ENCLOSING KEYCAP.
const KEYCAP: char = '\u{20e3}';
/// BRAILLE PATTERN BLANK, which shows nothing.
const BRAILLE_BLANK: char = '\u{2800}';

/// Whether a reader of the text may see something else than it contains.
pub(crate) fn hides_text(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    let mut marks = MARKS;
    for (at, &c) in chars.iter().enumerate() {
        // The first character has no letter before it that a mark could be on.
        marks = if is_mark(c) { marks + 1 } else { 0 };
        if marks > MARKS || is_hidden(c) && !joins(&chars[..at], c, &chars[at + 1..]) {
            return true;
        }
    }
    false
}

fn is_mark(c: char) -> bool {
    matches!(category(c), GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark)
}

fn is_hidden(c: char) -> bool {
    use GeneralCategory as G;
    matches!(category(c), G::Control | G::Format | G::LineSeparator | G::ParagraphSeparator)
        || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
        || c == BRAILLE_BLANK
}

fn category(c: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(c)
}

/// Whether an invisible character changes how the characters beside it look.
fn joins(before: &[char], c: char, after: &[char]) -> bool {
    let (Some(&last), next) = (before.last(), after.first().copied()) else { return false };
    match c {
        AS_TEXT | AS_EMOJI => is_pictured(last) || next == Some(KEYCAP),
        JOINER => {
            // The emoji before the joiner may end with a colour or skin modifier.
            let is_end =
                |&&c: &&char| c == AS_EMOJI || CodePointSetData::new::<EmojiModifier>().contains(c);
            let emoji = before.iter().rev().find(|c| !is_end(c)).copied();
            is_virama(last) || emoji.is_some_and(is_pictured) && next.is_some_and(is_pictured)
        }
        NON_JOINER => is_virama(last) || splits(before, after),
        _ => false,
    }
}

fn is_pictured(c: char) -> bool {
    CodePointSetData::new::<ExtendedPictographic>().contains(c)
}

fn is_virama(c: char) -> bool {
    CodePointMapData::<CanonicalCombiningClass>::new().get(c) == CanonicalCombiningClass::Virama
}

/// Whether the letters on both sides of a non-joiner would join without it.
fn splits(before: &[char], after: &[char]) -> bool {
    use JoiningType as J;
    let joining = |c: &char| CodePointMapData::<JoiningType>::new().get(*c);
    let first = |kind: &JoiningType| *kind != J::Transparent;
    let left = before.iter().rev().map(joining).find(first);
    let right = after.iter().map(joining).find(first);
    matches!(left, Some(J::LeftJoining | J::DualJoining))
        && matches!(right, Some(J::RightJoining | J::DualJoining))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_people_write_them_show_what_they_say() {
        for name in [
            "Ana",
            "Zoë Nuñez-O'Brien (she/her)",
            "Zoe\u{308}",
            "Nguye\u{302}\u{303}n",
            "علی‌رضا",
            "می‌خواهم",
            "ක්‍රිස්",
            "שָׁלוֹם",
            "བསྒྲུབས",
            "สุภาพร",
            "田中 太郎",
            "👩‍💻 Ada",
            "👩🏽‍🚀",
            "❤️‍🔥",
            "👨‍👩‍👧‍👦",
            "1️⃣",
            "☎︎",
            "🇫🇷",
        ] {
            assert!(!hides_text(name), "{name}");
        }
    }

    #[test]
    fn what_does_not_show_or_moves_other_text_is_found() {
        for hidden in [
            "An\u{2060}a",
            "An\u{200d}a",
            "An\u{200c}a",
            "Ana\u{200d}",
            "\u{200d}Ana",
            "👩\u{200d}",
            "👩\u{200d}a",
            "Ana\u{fe0f}",
            "1\u{fe0f}",
            "\u{e0041}Ana",
            "🏴\u{e0067}\u{e0062}\u{e007f}",
            "Ana\u{202e}",
            "\u{2066}Ana",
            "Ana\u{200f}",
            "\u{61c}Ana",
            "An\u{ad}a",
            "An\u{34f}a",
            "\u{115f}\u{1160}",
            "\u{3164}",
            "\u{ffa0}",
            "\u{2800}",
            "An\u{180b}a",
            "An\u{e0100}a",
            "Ana\n",
            "Ana\u{2028}",
            "\u{feff}Ana",
        ] {
            assert!(hides_text(hidden), "{hidden:?}");
        }
    }

    #[test]
    fn marks_do_not_stack_up_or_begin_a_name() {
        assert!(hides_text(&format!("A{}", "\u{301}".repeat(60))));
        assert!(hides_text(&format!("Bob{}", "\u{20dd}".repeat(5))));
        assert!(hides_text("\u{301}Ana"));
        assert!(!hides_text(&format!("A{}", "\u{301}".repeat(MARKS))));
    }
}
