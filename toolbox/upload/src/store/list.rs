//! A page of a list of objects, as a store tells it in XML. Stores differ in namespaces and in what they leave out: what is
//! needed is looked for by its name, anything else is passed over.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use quick_xml::{Reader, escape::resolve_predefined_entity, events::Event};

/// An object as a list has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    pub key: String,
    pub size_bytes: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub objects: Vec<Listed>,
    /// How to ask for the next page; none after the last.
    pub next: Option<String>,
}

/// Objects without a key or a size are an error: a list with holes would have files sent again, or not fetched.
pub(super) fn read(text: &str) -> Result<Page, String> {
    let (mut reader, mut page) = (Reader::from_str(text), Page::default());
    let (mut path, mut value) = (Vec::<String>::new(), String::new());
    let (mut key, mut size, mut is_encoded, mut is_cut_off) = (None, None, false, false);
    loop {
        match reader.read_event().map_err(|error| format!("its list is no XML: {error}"))? {
            Event::Start(tag) => {
                path.push(tag.local_name().as_ref().to_owned());
                value.clear();
            }
            Event::Text(text) => value.push_str(&text),
            Event::GeneralRef(name) => match name.resolve_char_ref() {
                Ok(Some(letter)) => value.push(letter),
                _ => value.push_str(resolve_predefined_entity(&name).unwrap_or_default()),
            },
            Event::End(_) => {
                let names: Vec<&str> = path.iter().map(String::as_str).collect();
                match names[..] {
                    ["ListBucketResult", "EncodingType"] => is_encoded = value == "url",
                    ["ListBucketResult", "IsTruncated"] => is_cut_off = value == "true",
                    ["ListBucketResult", "NextContinuationToken"] => page.next = Some(std::mem::take(&mut value)),
                    ["ListBucketResult", "Contents", "Key"] => key = Some(std::mem::take(&mut value)),
                    ["ListBucketResult", "Contents", "Size"] => size = value.parse().ok(),
                    ["ListBucketResult", "Contents"] => match (key.take(), size.take()) {
                        (Some(key), Some(size_bytes)) => page.objects.push(Listed { key, size_bytes }),
                        _ => return Err("its list has an object without a key or a size".to_owned()),
                    },
                    _ => {}
                }
                value.clear();
                path.pop();
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if !text.contains("ListBucketResult") || !path.is_empty() {
        return Err("its list is none, or half of one".to_owned());
    }
    if is_encoded {
        for object in &mut page.objects {
            // As in a query: some write a blank as +, and a plus is always %2B then.
            let spaced = object.key.replace('+', " ");
            let decoded = percent_decode_str(&spaced).decode_utf8().map(Cow::into_owned);
            object.key = decoded.map_err(|_| format!("its list has a key that is no UTF-8: {}", object.key))?;
        }
    }
    if is_cut_off && page.next.is_none() {
        return Err("its list goes on and does not say where".to_owned());
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(inner: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3/\"><Name>b</Name>{inner}</ListBucketResult>"
        )
    }

    fn check(inner: &str, keys: &[(&str, u64)]) {
        let page = read(&list(inner)).unwrap();
        let found: Vec<_> = page.objects.iter().map(|object| (object.key.as_str(), object.size_bytes)).collect();
        assert_eq!(found, keys);
    }

    #[test]
    fn keys_are_read_plain_and_encoded() {
        check("", &[]);
        let two = "<Contents><Key>a &amp; b&#228;</Key><Size>7</Size><ETag>&quot;x&quot;</ETag></Contents>\
                   <Contents>\n <Key>c%20d</Key>\n <Size>0</Size>\n <Owner><ID>Key</ID></Owner></Contents>";
        check(two, &[("a & bä", 7), ("c%20d", 0)]);
        check(&format!("<EncodingType>url</EncodingType>{two}"), &[("a & bä", 7), ("c d", 0)]);
    }

    #[test]
    fn the_next_page_is_named_and_half_a_list_is_an_error() {
        let more = "<IsTruncated>true</IsTruncated><NextContinuationToken>a/b==</NextContinuationToken>";
        assert_eq!(read(&list(more)).unwrap().next.as_deref(), Some("a/b=="));
        for bad in [
            "",
            "<html></html>",
            "<ListBucketResult><Contents><Key>a</Key>",
            "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
            "<ListBucketResult></Contents>",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
