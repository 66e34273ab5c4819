//! Text from outside in messages: names of files, values of requests, cells of tables. Whoever wrote it may have meant it for
//! the terminal, or for the reader's eyes, rather than for what it is.

use std::fmt::Write;

/// Characters that a message shows of a text from outside, as they are written.
const MOST: usize = 200;
/// Bytes of a whole message.
const MOST_OF_MESSAGE: usize = 2000;

/// A text from outside, as a message shows it: what a terminal would obey, and marks that turn the direction of writing, are
/// written as their numbers; long texts are cut.
///
/// ```
/// use locdiff_sphere::shown;
///
/// assert_eq!(shown("Übersee\u{1b}[31m.jpg"), "Übersee\\u{1b}[31m.jpg");
/// assert_eq!(shown("two\nlines"), "two\\nlines");
/// assert!(shown(&"x".repeat(1 << 20)).len() < 300);
/// ```
pub fn shown(text: &str) -> String {
    shown_while(text, |shown| shown.chars().count() < MOST, |_| false)
}

/// The same for a whole message, whose lines may be several and which may be longer.
pub fn shown_message(text: &str) -> String {
    shown_while(text, |shown| shown.len() < MOST_OF_MESSAGE, |character| character == '\n')
}

fn shown_while(
    text: &str,
    has_room: impl Fn(&str) -> bool,
    is_kept: impl Fn(char) -> bool,
) -> String {
    let mut shown = String::new();
    let mut characters = text.chars();
    while has_room(&shown)
        && let Some(character) = characters.next()
    {
        match character {
            kept if is_kept(kept) => shown.push(kept),
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            odd if is_odd_character(odd) => {
                let _ = write!(shown, "{}", odd.escape_unicode());
            }
            plain => shown.push(plain),
        }
    }
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

/// Whether a terminal obeys this character, or a reader does not see it for what it is: controls (C0, DEL, C1), separators of
/// lines, marks of direction, and marks without a width.
///
/// ```
/// use locdiff_sphere::is_odd_character;
///
/// assert!(['\u{1b}', '\n', '\u{9b}', '\u{202e}'].into_iter().all(is_odd_character));
/// assert!(!"Übersee 1.jpg".contains(is_odd_character));
/// ```
pub fn is_odd_character(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_is_obeyed() {
        let hostile =
            "a\u{1b}]0;title\u{7}\u{9b}2J\r\u{202e}gpj.exe\u{2066}\u{200f}\u{0}b\u{7f}\u{85}";
        for text in [shown(hostile), shown_message(hostile)] {
            assert!(text.starts_with("a\\u{1b}]0;title\\u{7}\\u{9b}2J\\u{d}\\u{202e}gpj.exe"));
            assert!(!text.chars().any(is_odd_character), "{text}");
        }
        assert_eq!(shown("a\nb"), "a\\nb");
        assert_eq!(shown_message("a\nb\u{1b}"), "a\nb\\u{1b}");
        for plain in ["Ürümqi 乌鲁木齐 🗺️.jpg", "C:\\photos\\a b.jpg", ""] {
            assert_eq!(shown(plain), plain);
        }
    }

    #[test]
    fn long_texts_are_cut_and_say_so() {
        assert_eq!(shown(&"é".repeat(MOST)), "é".repeat(MOST));
        assert_eq!(shown(&"é".repeat(MOST + 1)), "é".repeat(MOST) + "…");
        for text in ["\u{1b}", "x", "🗺"] {
            let text = text.repeat(1 << 20);
            assert!(shown(&text).len() <= 4 * MOST + 10);
            assert!(shown_message(&text).len() <= MOST_OF_MESSAGE + 10);
        }
    }
}
