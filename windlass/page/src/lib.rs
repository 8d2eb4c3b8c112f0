//! The demo page, embedded from `client-web/dist` as it was when the server was built.

use axum::Router;
use axum::body::Body;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

#[derive(RustEmbed)]
#[folder = "../../client-web/dist"]
struct Dist;

/// Content security policy of the page: scripts, WASM, workers and sockets of its own origin, and pictures and media
/// that it makes. Nothing from elsewhere.
const POLICY: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; \
    worker-src 'self' blob:; connect-src 'self' ws: wss:; img-src 'self' data: blob:; \
    media-src 'self' blob: mediastream:; style-src 'self' 'unsafe-inline'; object-src 'none'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/// Files of the browser SDK that pages of other origins load: the SDK itself by `<script>`, and its files that a
/// bundler leaves out.
const SDK: [&str; 4] = ["windlass-client.js", "worker.js", "windlass.wasm", "network-webgpu.js"];

/// Text of `/` if the page was not built.
const NOT_BUILT: &str = "The server runs, but its page was not built. \
    Stop it and run `cargo xtask run`, which builds the page first.\n";

/// Routes that answer every path with a file of the page.
///
/// # Examples
///
/// A server of the page alone:
///
/// ```
/// use axum::Router;
///
/// let app: Router = Router::new().fallback_service(windlass_page::router());
/// ```
pub fn router() -> Router {
    Router::new().fallback(file)
}

async fn file(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let path = match uri.path().trim_start_matches('/') {
        "" => "index.html",
        // Whether a call works here, and what one is like.
        "check" => "check.html",
        "demo" => "show.html",
        path => path,
    };
    let mut response = match Dist::get(path) {
        Some(EmbeddedFile { data, metadata }) => {
            found(path, data.into_owned(), &metadata.sha256_hash(), headers.get(IF_NONE_MATCH))
        }
        None if path == "index.html" => {
            (StatusCode::SERVICE_UNAVAILABLE, NOT_BUILT).into_response()
        }
        None => (StatusCode::NOT_FOUND, "there is no such file\n").into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static("camera=(self), microphone=(self), display-capture=(self)"),
    );
    if SDK.contains(&path) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        headers.insert(
            HeaderName::from_static("cross-origin-resource-policy"),
            HeaderValue::from_static("cross-origin"),
        );
    }
    response
}

/// Answer with a file that browsers may keep but must revalidate: names do not change with the content.
fn found(path: &str, data: Vec<u8>, hash: &[u8; 32], known: Option<&HeaderValue>) -> Response {
    let tag = hash[..8].iter().fold(String::from("\""), |tag, byte| format!("{tag}{byte:02x}"));
    let tag = format!("{tag}\"");
    let same = known.and_then(|k| k.to_str().ok()).is_some_and(|k| k.contains(&tag));
    let headers = [
        (CONTENT_TYPE, mime_type(path).to_owned()),
        (CACHE_CONTROL, "no-cache".to_owned()),
        (ETAG, tag),
    ];
    if same {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, Body::from(data)).into_response()
}

/// Content type of a file by its extension. Browsers run WASM streams and module scripts only with the right type.
fn mime_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "wasm" => "application/wasm",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "txt" => "text/plain; charset=utf-8",
        "webmanifest" => "application/manifest+json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(path: &'static str) -> Response {
        file(Method::GET, Uri::from_static(path), HeaderMap::new()).await
    }

    #[test]
    fn scripts_and_wasm_have_the_types_that_browsers_insist_on() {
        assert_eq!(mime_type("windlass.wasm"), "application/wasm");
        assert_eq!(mime_type("a/worker.js"), "text/javascript; charset=utf-8");
        assert_eq!(mime_type("index.html"), "text/html; charset=utf-8");
        assert_eq!(mime_type("README"), "application/octet-stream");
    }

    #[tokio::test]
    async fn the_root_is_the_page_or_says_how_to_get_it() {
        let response = get("/?room=tea").await;
        let built = Dist::get("index.html").is_some();
        let expected = if built { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        assert_eq!(response.status(), expected);
        assert!(response.headers().contains_key(CONTENT_SECURITY_POLICY));
    }

    #[tokio::test]
    async fn the_pages_beside_the_calls_have_paths_of_their_own() {
        for (path, file) in [("/check", "check.html"), ("/demo", "show.html")] {
            let expected =
                if Dist::get(file).is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
            let response = get(path).await;
            assert_eq!(response.status(), expected, "{path}");
            if expected == StatusCode::OK {
                assert_eq!(response.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
            }
        }
    }

    #[tokio::test]
    async fn paths_outside_the_folder_are_not_found() {
        for path in ["/no-such-file.js", "/../Cargo.toml", "/..%2fCargo.toml", "//etc/passwd"] {
            assert_eq!(get(path).await.status(), StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[tokio::test]
    async fn pages_of_other_origins_may_load_the_sdks_files_and_nothing_else() {
        let open = async |path| {
            let response = get(path).await;
            let value =
                |name| response.headers().get(name).map(|value| value.as_bytes().to_owned());
            (value("access-control-allow-origin"), value("cross-origin-resource-policy"))
        };
        for path in ["/windlass-client.js", "/worker.js", "/windlass.wasm", "/network-webgpu.js"] {
            let expected = (Some(b"*".to_vec()), Some(b"cross-origin".to_vec()));
            assert_eq!(open(path).await, expected, "{path}");
        }
        for path in ["/", "/demo.js", "/style.css", "/no-such-file.js", "//worker.js/"] {
            assert_eq!(open(path).await, (None, None), "{path}");
        }
    }

    #[tokio::test]
    async fn nothing_can_be_posted_to_the_page() {
        let response = file(Method::POST, Uri::from_static("/"), HeaderMap::new()).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    }

    #[test]
    fn a_file_that_the_browser_has_is_not_sent_again() {
        let first = found("a.js", b"x".to_vec(), &[7; 32], None);
        assert_eq!(first.status(), StatusCode::OK);
        let tag = first.headers().get(ETAG);
        let again = found("a.js", b"x".to_vec(), &[7; 32], tag);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        let changed = found("a.js", b"y".to_vec(), &[8; 32], tag);
        assert_eq!(changed.status(), StatusCode::OK);
    }
}
