//! sharp's side: a node process that is kept and asked line by line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use filestore_pictures::Fit;
use serde_json::{Value, json};

use super::ours::fit_name;
use super::report::Facts;
use super::{Asked, Outcome, QUALITY, SIDES, Times};

pub(crate) struct Sharp {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Sharp {
    pub(crate) fn start(threads: usize) -> Outcome<Self> {
        if std::env::var_os("COMPARE_SHARP").is_none() {
            return Err(
                "COMPARE_SHARP does not name the directory that sharp is installed in".into()
            );
        }
        let mut child = Command::new("node")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/compare/sharp.mjs"))
            .env("UV_THREADPOOL_SIZE", "1")
            .env("COMPARE_SHARP_THREADS", threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start node: {error}"))?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        Ok(Self { child, requests, answers })
    }

    pub(crate) fn ask(&mut self, request: &Value) -> Outcome<Value> {
        let requests = self.requests.as_mut().expect("open until dropped");
        writeln!(requests, "{request}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let answer: Value =
            serde_json::from_str(&line).map_err(|_| format!("sharp said: {line:?}"))?;
        match answer.get("error") {
            Some(error) => Err(format!("sharp: {error}").into()),
            None => Ok(answer),
        }
    }

    /// One variant; its bytes go to `out`.
    pub(crate) fn make(&mut self, wanted: Asked<'_>, out: Option<&Path>) -> Outcome<Times> {
        let mut request = request("make", wanted);
        request["out"] = json!(out);
        Ok(times(&self.ask(&request)?))
    }

    /// All seven sizes, a call for each; their bytes go to `<size>.webp` in the directory `out`.
    pub(crate) fn seven(&mut self, photo: &Path, fit: Fit, out: Option<&Path>) -> Outcome<Times> {
        let answer = self.ask(&json!({
            "op": "seven", "path": photo, "sizes": SIDES, "fit": fit_name(fit), "quality": QUALITY,
            "out": out,
        }))?;
        Ok(times(&answer))
    }

    /// Serves variants over HTTP from now on, and returns where.
    pub(crate) fn serve(&mut self) -> Outcome<SocketAddr> {
        let answer = self.ask(&json!({"op": "serve", "quality": QUALITY}))?;
        let port = answer["port"].as_u64().ok_or("no port")?;
        Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port)?)))
    }

    /// By how much the first variant of this process raised its peak of resident memory.
    pub(crate) fn peak_kib(&mut self, wanted: Asked<'_>) -> Outcome<u64> {
        Ok(self.ask(&request("peak", wanted))?["grown_kib"].as_u64().ok_or("no peak")?)
    }

    pub(crate) fn facts(&mut self, photo: &Path) -> Outcome<Facts> {
        let answer = self.ask(&json!({"op": "facts", "path": photo}))?;
        let (width, height) = (answer["width"].as_u64(), answer["height"].as_u64());
        Ok(Facts {
            size: format!("{}x{}", width.unwrap_or(0), height.unwrap_or(0)),
            progressive: answer["progressive"] == true,
            sampling: answer["sampling"].as_str().unwrap_or("-").to_owned(),
        })
    }
}

impl Drop for Sharp {
    fn drop(&mut self) {
        // The end of its input ends it, unless it serves.
        self.requests = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn request(op: &str, wanted: Asked<'_>) -> Value {
    json!({
        "op": op, "path": wanted.photo, "size": wanted.side, "fit": fit_name(wanted.fit),
        "quality": QUALITY,
    })
}

fn times(answer: &Value) -> Times {
    Times { wall_ms: ms(&answer["wall_ns"]), cpu_ms: ms(&answer["cpu_ns"]) }
}

fn ms(nanoseconds: &Value) -> f64 {
    nanoseconds.as_f64().map_or(f64::NAN, |ns| ns / 1e6)
}
