//! Server-sent events, from bytes in any cut to the data of each.

/// Takes a stream apart. Only `data` is looked at; events end with an empty line.
#[derive(Debug, Default)]
pub(super) struct EventReader {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
}

impl EventReader {
    /// Takes more bytes; gives the data of each event that is complete.
    pub(super) fn push(&mut self, bytes: &[u8], mut event: impl FnMut(&[u8])) {
        let mut lines = bytes.split(|&byte| byte == b'\n');
        let last = lines.next_back().unwrap_or_default();
        for end in lines {
            self.line.extend_from_slice(end);
            self.end_line(&mut event);
        }
        self.line.extend_from_slice(last);
    }

    fn end_line(&mut self, event: &mut impl FnMut(&[u8])) {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        if let Some(data) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            self.has_data = true;
        } else if line.is_empty() && std::mem::take(&mut self.has_data) {
            event(&self.data);
            self.data.clear();
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(chunks: &[&[u8]]) -> Vec<String> {
        let (mut reader, mut events) = (EventReader::default(), Vec::new());
        for chunk in chunks {
            reader.push(chunk, |data| events.push(String::from_utf8_lossy(data).into_owned()));
        }
        events
    }

    const STREAM: &[u8] =
        b": ping\n\ndata: {\"a\": 1}\n\nevent: error\ndata:two\r\ndata: lines\r\n\r\ndata: [DONE]\n\n";

    #[test]
    fn events_are_the_same_however_the_stream_is_cut() {
        let expected = ["{\"a\": 1}", "two\nlines", "[DONE]"];
        for size in 1..=STREAM.len() {
            let chunks: Vec<&[u8]> = STREAM.chunks(size).collect();
            assert_eq!(events(&chunks), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_that_does_not_end_is_none() {
        assert!(events(&[b"data: x\n"]).is_empty());
        assert_eq!(events(&[b"data:\n\n"]), [""]);
    }
}
