//! Forms with files (RFC 7578), read where they are: a part is a slice of the body, not a copy.

use bytes::Bytes;

/// The head of a part is at most this long: names and a type, never the content of a file.
const MOST_HEAD: usize = 8 << 10;

/// A part of a form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) file_name: Option<String>,
    pub(crate) bytes: Bytes,
}

/// What separates the parts, if this type of content is a form.
pub(crate) fn boundary(content_type: &str) -> Option<String> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameter(parameters, "boundary")?;
    (1..=70).contains(&boundary.len()).then_some(boundary)
}

/// The parts of a form, in their order; or what is wrong with it.
pub(crate) fn parts(body: &Bytes, boundary: &str) -> impl Iterator<Item = Result<Part, String>> {
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    // The first one needs no line above it.
    let first = match body.starts_with(&delimiter[2..]) {
        true => Some(delimiter.len() - 2),
        false => find(body, &delimiter).map(|at| at + delimiter.len()),
    };
    let (body, mut position) = (body.clone(), first);
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let part = next_part(&body, &delimiter, &mut position);
        is_over = !matches!(part, Ok(Some(_)));
        part.transpose()
    })
}

/// `position` is behind a delimiter, and moves behind the next one.
fn next_part(
    body: &Bytes,
    delimiter: &[u8],
    position: &mut Option<usize>,
) -> Result<Option<Part>, String> {
    let early = || "it ends before its last boundary".to_owned();
    let start = position.ok_or_else(early)?;
    let rest = &body[start..];
    if rest.starts_with(b"--") {
        return Ok(None);
    }
    let top = &rest[..rest.len().min(MOST_HEAD)];
    let endless = || match top.len() < rest.len() {
        true => format!("the head of a part is longer than {} kB", MOST_HEAD >> 10),
        false => early(),
    };
    // Blanks may follow a boundary.
    let line = find(top, b"\r\n").ok_or_else(endless)?;
    if rest[..line].iter().any(|byte| !b" \t".contains(byte)) {
        return Err("a boundary is followed by something else".to_owned());
    }
    // The head may be empty: then its end is the end of the boundary's line.
    let head = line + find(&top[line..], b"\r\n\r\n").ok_or_else(endless)?;
    let content = head + 4;
    let length = find(&rest[content..], delimiter).ok_or_else(early)?;
    *position = Some(start + content + length + delimiter.len());
    let head = String::from_utf8_lossy(&rest[line..head]);
    let disposition = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    });
    let disposition = disposition.unwrap_or_default();
    Ok(Some(Part {
        name: parameter(disposition, "name").unwrap_or_default(),
        file_name: parameter(disposition, "filename"),
        bytes: body.slice(start + content..start + content + length),
    }))
}

/// The value of a parameter such as `name="a \"b\""`.
fn parameter(text: &str, name: &str) -> Option<String> {
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find([';', '=']).unwrap_or(rest.len());
        let key = rest[..end].trim();
        if !rest[end..].starts_with('=') {
            rest = rest.get(end + 1..).unwrap_or_default();
            continue;
        }
        let value = rest[end + 1..].trim_start();
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let end = value.find(';').unwrap_or(value.len());
                (value[..end].trim().to_owned(), &value[end..])
            }
        };
        if key.eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = after.trim_start().strip_prefix(';').unwrap_or_default();
    }
    None
}

/// Up to the closing quote, and what is behind it. A backslash only means something before a quote or another: names of files
/// from Windows have more of them.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next_if(|(_, next)| ['"', '\\'].contains(next)) {
                Some((_, escaped)) => value.push(escaped),
                None => value.push('\\'),
            },
            plain => value.push(plain),
        }
    }
    None
}

/// Where a text begins in another.
fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let (first, mut from) = (*wanted.first()?, 0);
    loop {
        from += bytes[from..].iter().position(|byte| *byte == first)?;
        if bytes[from..].starts_with(wanted) {
            return Some(from);
        }
        from += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Vec<Part>, String> {
        parts(&Bytes::copy_from_slice(body.as_bytes()), "xyz").collect()
    }

    fn part(name: &str, file_name: Option<&str>, bytes: &str) -> Part {
        let bytes = Bytes::copy_from_slice(bytes.as_bytes());
        Part { name: name.to_owned(), file_name: file_name.map(str::to_owned), bytes }
    }

    #[test]
    fn parts_are_slices_of_the_body() {
        let body = Bytes::from_static(
            b"--xyz\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a.jpg\"\r\n\r\n\r\n--xy\r\n--xyz--",
        );
        let found: Vec<Part> = parts(&body, "xyz").collect::<Result<_, _>>().expect("a form");
        assert_eq!(found, [part("image", Some("a.jpg"), "\r\n--xy")]);
        assert!(body.as_ptr_range().contains(&found[0].bytes.as_ptr()));
    }

    #[test]
    fn forms_of_browsers_and_programs_are_read() {
        let form = "a preamble\r\n--xyz \t\r\nContent-Type: image/png\r\ncontent-disposition:form-data;name=image;  filename=\"a \\\"b\\\" C:\\c;d.png\"\r\n\r\nONE\r\n\
                    --xyz\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\n\r\n--xyz\r\n\r\nno head\r\n--xyz--\r\nepilogue";
        let expected = [
            part("image", Some("a \"b\" C:\\c;d.png"), "ONE"),
            part("text", None, ""),
            part("", None, "no head"),
        ];
        assert_eq!(read(form), Ok(expected.into()));
        assert_eq!(read("--xyz--"), Ok(vec![]));
    }

    #[test]
    fn forms_that_end_early_are_told() {
        let whole = "--xyz\r\nContent-Disposition: form-data; name=\"image\"\r\n\r\nONE\r\n--xyz--";
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{}", &whole[..length]);
        }
        assert_eq!(read(whole), Ok(vec![part("image", None, "ONE")]));
        assert!(read("--xyzzy\r\n\r\n\r\n--xyz--").is_err());
        assert!(read("--other\r\n\r\n\r\n--other--").is_err());
    }

    #[test]
    fn heads_have_an_end() {
        let with = |length: usize| {
            let head = format!("Content-Disposition: form-data; name={}", "x".repeat(length));
            read(&format!("--xyz\r\n{head}\r\n\r\nONE\r\n--xyz--"))
        };
        assert_eq!(with(MOST_HEAD - 100).expect("short").len(), 1);
        assert!(with(MOST_HEAD).expect_err("long").contains("longer than 8 kB"));
        let blanks = format!("--xyz{}\r\n\r\n\r\n--xyz--", " ".repeat(MOST_HEAD));
        assert!(read(&blanks).expect_err("long").contains("longer than 8 kB"));
    }

    #[test]
    fn boundaries_are_found() {
        for (kind, expected) in [
            ("multipart/form-data; boundary=abc", Some("abc")),
            ("Multipart/Form-Data; charset=utf-8; Boundary=\"a b\"", Some("a b")),
            ("multipart/form-data; boundary=", None),
            ("multipart/form-data", None),
            ("image/jpeg; boundary=abc", None),
        ] {
            assert_eq!(boundary(kind).as_deref(), expected, "{kind}");
        }
    }
}
