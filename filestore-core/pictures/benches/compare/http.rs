//! Both sides over HTTP/1.1 on one connection each, which is kept: no library of a client is measured.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

use super::ours::fit_name;
use super::{Asked, Outcome, Times};

const BOUNDARY: &str = "the-boundary-of-the-comparison";

/// Our server, with a data directory of its own; it ends with this.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    _data: TempDir,
}

impl Server {
    pub(crate) fn start(program: &Path) -> Outcome<Self> {
        let data = tempfile::tempdir()?;
        let mut child = Command::new(program)
            .args(["--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let mut said = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut said)?;
        let address = said.split_whitespace().find_map(|word| word.strip_prefix("http://"));
        let address = address.ok_or_else(|| format!("the server said: {said:?}"))?.parse()?;
        Ok(Self { child, address, _data: data })
    }

    pub(crate) fn connect(&self) -> Outcome<Connection> {
        Connection::open(self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that is kept.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Outcome<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::with_capacity(1 << 16, stream) })
    }

    /// Asks for `path`; the time is from the request to the last byte. Returns the number of bytes.
    pub(crate) fn get(&mut self, path: &str) -> Outcome<(Times, usize)> {
        let start = Instant::now();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.stream.get_mut().write_all(request.as_bytes())?;
        let bytes = self.answer()?.len();
        let wall_ms = start.elapsed().as_secs_f64() * 1e3;
        Ok((Times { wall_ms, cpu_ms: wall_ms }, bytes))
    }

    /// Uploads `photo` and returns its id.
    pub(crate) fn upload(&mut self, photo: &Path) -> Outcome<String> {
        let mut body = Vec::new();
        for (name, value) in [("organization_id", "1"), ("sub_system", "compare")] {
            write!(
                body,
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name={name}\r\n\r\n{value}\r\n"
            )?;
        }
        write!(
            body,
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=file; filename=a.jpg\r\n\r\n"
        )?;
        body.extend(fs::read(photo)?);
        write!(body, "\r\n--{BOUNDARY}--\r\n")?;

        let length = body.len();
        let head = format!(
            "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\
             Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n"
        );
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(&body)?;
        let record: Value = serde_json::from_slice(&self.answer()?)?;
        Ok(record["file_id"].as_str().ok_or("no id")?.to_owned())
    }

    /// Reads an answer that has a length.
    fn answer(&mut self) -> Outcome<Vec<u8>> {
        let mut length = 0;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let start = head.len();
            if self.stream.read_line(&mut head)? == 0 {
                return Err("the connection ended".into());
            }
            if let Some((name, value)) = head[start..].split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        match head.split_whitespace().nth(1) {
            Some("200" | "201") => Ok(body),
            _ => Err(format!("{head}{}", String::from_utf8_lossy(&body)).into()),
        }
    }
}

/// The path of our variant.
pub(crate) fn our_path(id: &str, wanted: Asked<'_>) -> String {
    let (size, fit) = (wanted.side, fit_name(wanted.fit));
    format!("/api/v1/files/{id}/{size}/{size}?fit={fit}")
}

/// The path of sharp's, whose server reads the photograph where it is.
pub(crate) fn sharp_path(wanted: Asked<'_>) -> String {
    format!("{}?size={}&fit={}", wanted.photo.display(), wanted.side, fit_name(wanted.fit))
}
