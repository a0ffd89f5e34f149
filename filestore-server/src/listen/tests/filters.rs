//! Filters of warp as the service.

use hyper::Request;
use hyper::service::{Service as _, service_fn};
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::oneshot;
use warp::Filter as _;

use super::super::{Listener, Peer, RequestBody, serve};
use super::{generous, one_reply, rest};
use crate::listen::body::Timeouts;
use crate::multipart::{Limits, MultipartReader, boundary_of};

#[tokio::test]
async fn a_warp_filter_is_served_and_sees_its_peer() {
    let filter = warp::path!("peer").and(warp::ext::get::<Peer>()).map(|peer| format!("{peer:?}"));
    let filter = TowerToHyperService::new(warp::service(filter));
    let service = service_fn(move |mut request: Request<RequestBody>| {
        let peer = request.body().peer();
        request.extensions_mut().insert(peer);
        filter.call(request)
    });
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let listener = Listener::from(UnixListener::bind(&path).unwrap());
    let (stop, stopping) = oneshot::channel::<()>();
    let served = tokio::spawn(serve(listener, service, generous(), async {
        stopping.await.unwrap();
    }));
    let mut client = UnixStream::connect(&path).await.unwrap();
    client.write_all(b"GET /peer HTTP/1.0\r\n\r\n").await.unwrap();
    let reply = rest(&mut client).await;
    assert!(reply.starts_with("HTTP/1.0 200 OK\r\n") && reply.ends_with("\r\n\r\nUnix"), "{reply}");

    stop.send(()).unwrap();
    assert_eq!(served.await.unwrap(), 0);
}

#[tokio::test]
async fn a_form_read_through_warp_leaves_the_connection_open_for_the_next() {
    let filter = warp::header::<String>("content-type").and(warp::body::stream()).then(
        |content_type: String, body| async move {
            let boundary = boundary_of(&content_type).unwrap();
            let mut form =
                MultipartReader::new(body, &boundary, Limits::default(), Timeouts::default());
            let mut names = String::new();
            while let Some(part) = form.next_part().await.unwrap() {
                names.push_str(part.name());
            }
            names
        },
    );

    let service = TowerToHyperService::new(warp::service(filter));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener.into(), service, generous(), std::future::pending()));
    let part = |name, data: &str| {
        format!("--b\r\nContent-Disposition: form-data; name={name}\r\n\r\n{data}\r\n")
    };
    let body = format!("{}{}--b--\r\n", part("one", &"x".repeat(300_000)), part("two", ""));
    let mut client = TcpStream::connect(address).await.unwrap();
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());

    for (framing, body) in [
        (format!("Content-Length: {}", body.len()), &body),
        ("Transfer-Encoding: chunked".to_owned(), &chunk),
        (format!("Content-Length: {}", body.len()), &body),
    ] {
        let head =
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\n";
        client.write_all(format!("{head}{framing}\r\n\r\n{body}").as_bytes()).await.unwrap();
        let reply = one_reply(&mut client).await;
        assert!(
            reply.ends_with("\r\n\r\nonetwo") && !reply.contains("connection: close"),
            "{reply}"
        );
    }
}
