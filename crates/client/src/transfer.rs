//! Files on their way: uploads go on at the byte that the hub has, downloads at the byte that we
//! have.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use potluck_release::Study;
use potluck_release::exchange::UploadState;
use potluck_release::files::{Audience, Existing, PendingFile};
use sha2::{Digest, Sha256};
use ureq::http::{Method, Response, StatusCode, header};
use ureq::{Body, SendBody};

use crate::hub::{Access, of_party, of_study};
use crate::retry::Patience;
use crate::{Error, Hub};

/// Bytes that are sent in one request. Proxies that hold back or limit bodies still let an upload
/// get on.
const PIECE: u64 = 8 << 20;

const BUFFER: usize = 64 << 10;

/// Called with the number of bytes that are across, and how many there are in all if that is known.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(u64, Option<u64>);

/// What a file is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDigest {
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its length in bytes.
    pub size: u64,
}

impl FileDigest {
    /// Of a file.
    pub fn of(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        let mut hash = Sha256::new();
        let mut size = 0;
        let mut buffer = vec![0; BUFFER];
        loop {
            match file.read(&mut buffer).map_err(failed)? {
                0 => return Ok(Self { sha256: hex::encode(hash.finalize()), size }),
                read => {
                    hash.update(&buffer[..read]);
                    size += read as u64;
                }
            }
        }
    }
}

/// More bytes than a public dataset of this study can have.
pub fn largest_dataset(study: &Study) -> u64 {
    // Numbers compressed or not, and room for the manifest, which holds the study and the sums of
    // every party.
    let numbers = study.seal().k().saturating_mul(8 * study.definition().width() as u64);
    numbers.saturating_mul(2).saturating_add(256 << 20)
}

/// A file that was downloaded and has the hash that was asked for. It is removed unless it is
/// published.
pub struct Downloaded {
    pending: Option<PendingFile>,
    digest: FileDigest,
}

impl Downloaded {
    /// Where it is until it is published.
    pub fn path(&self) -> &Path {
        self.pending.as_ref().expect("it is pending until it is published").temporary()
    }

    /// What it is known by.
    pub fn digest(&self) -> &FileDigest {
        &self.digest
    }

    /// Gives the file its name.
    pub fn publish(mut self) -> Result<FileDigest, Error> {
        if let Some(pending) = self.pending.take() {
            pending.publish()?;
        }
        Ok(self.digest.clone())
    }
}

impl Drop for Downloaded {
    fn drop(&mut self) {
        if let Some(pending) = &self.pending {
            pending.discard();
        }
    }
}

impl Hub {
    /// Uploads a release file. Bytes that the hub has are not sent again; if it has them all,
    /// nothing is sent.
    pub fn upload(
        &self,
        study: &str,
        party: &str,
        path: &Path,
        progress: Progress<'_>,
    ) -> Result<UploadState, Error> {
        let digest = FileDigest::of(path)?;
        let mut file = File::open(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
        let mut patience = Patience::new(self);
        let mut furthest = None;
        // Where the hub is, if we know.
        let mut at = None;
        loop {
            let step = match at {
                None => self.upload_state_once(study, party, &digest.sha256),
                Some(offset) => self.put(study, party, &digest, &mut file, offset, progress),
            };
            let state = match step {
                Err(Error::Refused { problem, .. })
                    if problem.status == 409 && problem.received.is_some() =>
                {
                    UploadState { received: problem.received.unwrap_or_default(), complete: false }
                }
                Err(error) => {
                    patience.wait(error)?;
                    at = None;
                    continue;
                }
                Ok(state) => state,
            };
            if state.complete {
                return Ok(state);
            }
            if state.received > digest.size {
                return Err(self.protocol("it has more bytes of the release than there are"));
            }
            if furthest.is_none_or(|furthest| state.received > furthest) {
                furthest = Some(state.received);
                patience.renew();
            } else if at.is_some() {
                // Nothing went wrong, but nothing came of it either.
                patience.wait(Error::Unreachable {
                    hub: self.address().to_string(),
                    detail: format!(
                        "the upload does not get past {} of {} bytes",
                        state.received, digest.size
                    ),
                    passing: true,
                })?;
            }
            progress(state.received, Some(digest.size));
            at = Some(state.received);
        }
    }

    /// Sends the next piece of a file.
    fn put(
        &self,
        study: &str,
        party: &str,
        digest: &FileDigest,
        file: &mut File,
        offset: u64,
        progress: Progress<'_>,
    ) -> Result<UploadState, Error> {
        let length = PIECE.min(digest.size - offset);
        file.seek(SeekFrom::Start(offset)).map_err(|error| self.transport(error.into()))?;
        let mut body = Counted { source: file.take(length), at: offset, size: digest.size, progress };
        let query = [
            ("sha256", digest.sha256.clone()),
            ("offset", offset.to_string()),
            ("size", digest.size.to_string()),
        ];
        let request = self
            .request(Method::PUT, &format!("{}/release", of_party(study, party)), &query, Access::Token)?
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .header(header::CONTENT_LENGTH, length)
            // A refusal comes before the bytes are sent.
            .header(header::EXPECT, "100-continue");
        let response = self.send(request, SendBody::from_reader(&mut body))?;
        self.json(response, "the state of the upload")
    }

    /// Downloads the public dataset of a study to a temporary file beside `out`.
    pub fn download_dataset(
        &self,
        study: &Study,
        out: &Path,
        existing: Existing,
        sha256: Option<&str>,
        progress: Progress<'_>,
    ) -> Result<Downloaded, Error> {
        let path = format!("{}/dataset", of_study(study.id()));
        let wanted =
            Wanted { path: &path, what: "the public dataset", sha256, limit: largest_dataset(study) };
        self.download(&wanted, out, existing, progress)
    }

    /// Downloads a party's release to a temporary file beside `out`.
    pub fn download_release(
        &self,
        study: &Study,
        party: &str,
        out: &Path,
        existing: Existing,
        sha256: Option<&str>,
        progress: Progress<'_>,
    ) -> Result<Downloaded, Error> {
        let path = format!("{}/release", of_party(study.id(), party));
        let wanted = Wanted { path: &path, what: "the release", sha256, limit: largest_dataset(study) };
        self.download(&wanted, out, existing, progress)
    }

    fn download(
        &self,
        wanted: &Wanted<'_>,
        out: &Path,
        existing: Existing,
        progress: Progress<'_>,
    ) -> Result<Downloaded, Error> {
        let fill = |file: &mut File| {
            let mut copy = Copy { file, out, hash: Sha256::new(), received: 0, total: None, tag: None };
            let mut patience = Patience::new(self);
            loop {
                let before = copy.received;
                match self.receive(wanted, &mut copy, progress) {
                    Ok(()) => break,
                    Err(error) => {
                        if copy.received > before {
                            patience.renew();
                        }
                        patience.wait(error)?;
                    }
                }
            }
            Ok(FileDigest { sha256: hex::encode(copy.hash.finalize()), size: copy.received })
        };
        let (pending, digest) = PendingFile::fill::<_, Error>(out, existing, Audience::Public, fill)?;
        let downloaded = Downloaded { pending: Some(pending), digest };
        if wanted.sha256.is_some_and(|expected| expected != downloaded.digest.sha256) {
            return Err(self.unsound(wanted.what, "its bytes do not have the hash that they should have"));
        }
        Ok(downloaded)
    }

    /// Takes what is left of a file, or as much of it as comes.
    fn receive(&self, wanted: &Wanted<'_>, copy: &mut Copy<'_>, progress: Progress<'_>) -> Result<(), Error> {
        let mut request = self
            .request(Method::GET, wanted.path, &[], Access::Public)?
            // Bytes are counted, so they must come as they are.
            .header(header::ACCEPT_ENCODING, "identity");
        match &copy.tag {
            Some(tag) if copy.received > 0 => {
                request = request
                    .header(header::RANGE, format!("bytes={}-", copy.received))
                    .header(header::IF_RANGE, tag);
            }
            _ => copy.restart()?,
        }
        let response = match self.send(request, ()) {
            Err(error) if error.status() == Some(416) => {
                // What is left is not what it was: from the start.
                copy.tag = None;
                return Err(Error::Unreachable {
                    hub: self.address().to_string(),
                    detail: format!("{} has changed", wanted.what),
                    passing: true,
                });
            }
            other => other?,
        };
        self.begin(wanted, copy, &response)?;
        let mut source = response.into_body().into_reader();
        let mut buffer = vec![0; BUFFER];
        loop {
            let read = source.read(&mut buffer).map_err(|error| self.transport(error.into()))?;
            if read == 0 {
                break;
            }
            if copy.received + read as u64 > wanted.limit {
                return Err(self.too_large(wanted.what, wanted.limit));
            }
            copy.push(&buffer[..read])?;
            progress(copy.received, copy.total);
        }
        if copy.total.is_some_and(|total| total != copy.received) {
            return Err(self.transport(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
        }
        Ok(())
    }

    /// Whether the bytes that follow are the rest of the file, or all of it again.
    fn begin(
        &self,
        wanted: &Wanted<'_>,
        copy: &mut Copy<'_>,
        response: &Response<Body>,
    ) -> Result<(), Error> {
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let length: Option<u64> = text(header::CONTENT_LENGTH).and_then(|text| text.parse().ok());
        if response.status() == StatusCode::PARTIAL_CONTENT {
            let range = text(header::CONTENT_RANGE).and_then(content_range);
            let Some((start, total)) = range.filter(|&(start, _)| start == copy.received) else {
                return Err(self.protocol("it sends another part of the file than the one asked for"));
            };
            copy.total = total.or_else(|| length.map(|length| start.saturating_add(length)));
        } else {
            copy.restart()?;
            copy.total = length;
            // A weak tag does not promise the same bytes.
            copy.tag = text(header::ETAG).filter(|tag| tag.starts_with('"')).map(str::to_owned);
        }
        if copy.total.is_some_and(|total| total > wanted.limit) {
            return Err(self.too_large(wanted.what, wanted.limit));
        }
        Ok(())
    }
}

/// What to download.
struct Wanted<'a> {
    path: &'a str,
    what: &'a str,
    sha256: Option<&'a str>,
    limit: u64,
}

/// A file as far as it has been received.
struct Copy<'a> {
    file: &'a mut File,
    out: &'a Path,
    hash: Sha256,
    received: u64,
    total: Option<u64>,
    tag: Option<String>,
}

impl Copy<'_> {
    fn failed(&self) -> impl Fn(io::Error) -> Error + use<> {
        let path = self.out.to_owned();
        move |source| Error::File { path: path.clone(), source }
    }

    fn restart(&mut self) -> Result<(), Error> {
        self.hash = Sha256::new();
        (self.received, self.total) = (0, None);
        self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0))).map_err(self.failed())?;
        Ok(())
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(self.failed())?;
        self.hash.update(bytes);
        self.received += bytes.len() as u64;
        Ok(())
    }
}

/// Start and whole length in `bytes START-END/LENGTH`.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.trim().parse().ok()?, total.trim().parse().ok()))
}

/// Tells how much of a body has been sent.
struct Counted<'a> {
    source: io::Take<&'a mut File>,
    at: u64,
    size: u64,
    progress: Progress<'a>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.at += read as u64;
        (self.progress)(self.at, Some(self.size));
        Ok(read)
    }
}
