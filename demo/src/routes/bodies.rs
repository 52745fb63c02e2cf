//! `POST /` and `/upload`: bodies of any length, streamed.

use axum::Json;
use axum::body::Body;
use axum::extract::Multipart;
use axum::extract::multipart::MultipartError;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;

use crate::app::Refusal;

/// Maximum number of parts in a form, because the response lists them.
const PARTS_MAX: usize = 100;
const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// A part of a form in the response.
#[derive(Serialize)]
pub(crate) struct Part {
    name: Option<String>,
    file: Option<String>,
    #[serde(rename = "type")]
    media_type: Option<String>,
    bytes: u64,
}

/// Echoes the body with its type as it arrives.
pub(crate) async fn echo(headers: HeaderMap, body: Body) -> impl IntoResponse {
    let media_type = headers.get(header::CONTENT_TYPE).cloned().unwrap_or(OCTETS);
    ([(header::CONTENT_TYPE, media_type)], body)
}

/// Lists the names and lengths of a form's parts.
pub(crate) async fn upload(mut form: Multipart) -> Result<Json<Vec<Part>>, Refusal> {
    let refused = |error: MultipartError| (error.status(), format!("{}\n", error.body_text()));
    let mut parts = Vec::new();
    while let Some(mut field) = form.next_field().await.map_err(refused)? {
        if parts.len() == PARTS_MAX {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, format!("more than {PARTS_MAX} parts\n")));
        }
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let (name, file, media_type) =
            (owned(field.name()), owned(field.file_name()), owned(field.content_type()));
        let mut bytes = 0;
        while let Some(piece) = field.chunk().await.map_err(refused)? {
            bytes += piece.len() as u64;
        }
        parts.push(Part { name, file, media_type, bytes });
    }
    Ok(Json(parts))
}
