//! `GET /openapi.json`: the HTTP interface, described by the types and handlers that make it.
//!
//! A route is made together with its description, so that none can lack one. The server SDKs are made from the
//! description (`cargo xtask protocol`): so it has what tokens and webhooks contain too.

use std::sync::Arc;
use std::sync::LazyLock;

use axum::Json;
use serde_json::{Value, json};
use utoipa::OpenApi;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, PathItem, Paths};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::response::Response;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, Content, Ref, RefOr, Schema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_protocol::ErrorCode;

use crate::admin::error::AdminErrorCode;
use crate::shared::Shared;
use crate::webhooks::EventType;
use crate::{admin, health, metrics, socket, whip_whep};

#[derive(OpenApi)]
#[openapi(
    info(title = "Windlass", description = "Signalling, administration and metrics of a Windlass server."),
    components(schemas(crate::webhooks::Event, crate::access::Claims)),
    tags(
        (name = "rooms", description = "Rooms, participants and tracks. Needs a token that grants `admin` for the room, or for `*`."),
        (name = "server", description = "The server as a whole. What is under /admin needs a token that grants `admin` for `*`."),
        (name = "calls", description = "What participants use.")
    )
)]
struct Description;

/// Routes of calls and of the admin API, with their description.
pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(socket::upgrade))
        .merge(health_routes())
        .merge(admin::routes())
        .merge(whip_whep::routes())
}

/// Routes of the operator's programs.
pub(crate) fn figures() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(metrics::handler)).routes(routes!(openapi))
}

/// Routes of health checks.
pub(crate) fn health_routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(health::healthz)).routes(routes!(health::readyz))
}

/// The complete description.
pub(crate) fn description() -> utoipa::openapi::OpenApi {
    let mut api = routes().merge(figures()).into_openapi();
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("JWT")
        .description(Some("An access token (docs/signaling.md). Not asked for where no token keys are configured."))
        .build();
    let components = api.components.get_or_insert_default();
    components.add_security_scheme("token", SecurityScheme::Http(bearer));
    describe_values(components);
    for (path, item) in &mut api.paths.paths {
        if !takes_token(path) {
            continue;
        }
        let operations =
            [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch];
        for operation in operations.into_iter().flatten() {
            let needed = SecurityRequirement::new("token", Vec::<String>::new());
            operation.security = Some(vec![needed]);
        }
    }
    api.webhooks = Some(webhooks());
    api
}

/// Describes the values of enums, for which OpenAPI has no field.
fn describe_values(components: &mut Components) {
    // One extension for each enum, with keys in the order of the alphabet: so equal descriptions have equal texts.
    let codes = ErrorCode::ALL.iter();
    let codes = codes.map(|c| json!({"description": c.description(), "hint": c.hint()}));
    let admin = AdminErrorCode::ALL
        .iter()
        .map(|c| json!({"description": c.description(), "hint": c.hint(), "status": c.status()}));
    let events = EventType::ALL.iter().map(|e| json!({"description": e.description()}));
    let all: [(&str, Vec<Value>); 3] = [
        ("ErrorCode", codes.collect()),
        ("AdminErrorCode", admin.collect()),
        ("EventType", events.collect()),
    ];
    for (name, values) in all {
        if let Some(RefOr::T(Schema::Object(object))) = components.schemas.get_mut(name) {
            object.extensions = Some(Extensions::builder().add("x-enum-values", values).build());
        }
    }
}

/// Requests of the server to the application.
fn webhooks() -> Paths {
    let event = Content::new(Some(Ref::from_schema_name("Event")));
    let event = RequestBodyBuilder::new().content("application/json", event).build();
    let report = OperationBuilder::new()
        .operation_id(Some("event"))
        .summary(Some("Report an event of a room"))
        .description(Some("Signed by Standard Webhooks (docs/webhooks.md)."))
        .request_body(Some(event))
        .response("2XX", Response::new("Accepted; any other answer is a failure, and tried again"));
    let mut webhooks = Paths::new();
    webhooks.paths.insert("event".to_owned(), PathItem::new(HttpMethod::Post, report));
    webhooks
}

/// The description of the HTTP interface, as `/openapi.json` has it.
///
/// # Errors
///
/// Fails if the description cannot be serialised.
pub fn document() -> serde_json::Result<String> {
    serde_json::to_string_pretty(&description()).map(|text| text + "\n")
}

/// Whether requests to a path have an `Authorization`.
fn takes_token(path: &str) -> bool {
    ["/admin/", "/whip/", "/whep/"].iter().any(|part| path.starts_with(part))
}

/// Describe the HTTP interface.
#[utoipa::path(get, path = "/openapi.json", tag = "server",
    responses((status = 200, description = "An OpenAPI document", body = Value)))]
async fn openapi() -> Json<&'static utoipa::openapi::OpenApi> {
    static DESCRIPTION: LazyLock<utoipa::openapi::OpenApi> = LazyLock::new(description);
    Json(&DESCRIPTION)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_sdks_are_made_from_this_description() {
        let path = "sdk/openapi.json";
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(written == document().unwrap(), "{path} differs: run `cargo xtask protocol`");
    }

    fn document_value() -> Value {
        serde_json::to_value(description()).unwrap()
    }

    /// Every object in a document, with where it stands.
    fn walk<'a>(at: &str, value: &'a Value, found: &mut Vec<(String, &'a Value)>) {
        match value {
            Value::Object(fields) => {
                found.push((at.to_owned(), value));
                for (name, field) in fields {
                    walk(&format!("{at}/{name}"), field, found);
                }
            }
            Value::Array(items) => {
                for (n, item) in items.iter().enumerate() {
                    walk(&format!("{at}/{n}"), item, found);
                }
            }
            _ => {}
        }
    }

    /// Each operation as `GET /path` with what is said of it.
    fn operations(api: &Value) -> Vec<(String, String, &Value)> {
        let paths = api["paths"].as_object().unwrap().iter();
        paths
            .flat_map(|(path, item)| {
                let item = item.as_object().unwrap().iter();
                item.map(move |(method, op)| (method.to_uppercase(), path.clone(), op))
            })
            .collect()
    }

    #[test]
    fn values_of_enums_are_described() {
        let api = document_value();
        for (name, key) in
            [("ErrorCode", "hint"), ("AdminErrorCode", "status"), ("EventType", "description")]
        {
            let schema = &api["components"]["schemas"][name];
            let values = schema["x-enum-values"].as_array().unwrap();
            assert_eq!(values.len(), schema["enum"].as_array().unwrap().len(), "{name}");
            assert!(values.iter().all(|value| !value[key].is_null()), "{name}");
        }
    }

    #[test]
    fn every_route_is_described() {
        let api = document_value();
        let described: BTreeSet<String> =
            operations(&api).iter().map(|(method, path, _)| format!("{method} {path}")).collect();
        let routes = [
            "DELETE /admin/revoked/{token}",
            "DELETE /admin/rooms/{room}",
            "DELETE /admin/rooms/{room}/bans/{identity}",
            "DELETE /admin/rooms/{room}/participants/{participant}",
            "DELETE /admin/rooms/{room}/participants/{participant}/grants",
            "DELETE /whep/{room}/{session}",
            "DELETE /whip/{room}/{session}",
            "GET /admin/rooms",
            "GET /admin/rooms/{room}",
            "GET /admin/rooms/{room}/bans",
            "GET /admin/rooms/{room}/waiting",
            "GET /healthz",
            "GET /metrics",
            "GET /openapi.json",
            "GET /readyz",
            "GET /ws",
            "OPTIONS /whep/{room}",
            "OPTIONS /whep/{room}/{session}",
            "OPTIONS /whip/{room}",
            "OPTIONS /whip/{room}/{session}",
            "PATCH /whep/{room}/{session}",
            "PATCH /whip/{room}/{session}",
            "POST /admin/drain",
            "POST /admin/enhancer",
            "POST /admin/policy",
            "POST /whep/{room}",
            "POST /whip/{room}",
            "PUT /admin/revoked/{token}",
            "PUT /admin/rooms/{room}",
            "PUT /admin/rooms/{room}/bans/{identity}",
            "POST /admin/rooms/{room}/recording",
            "GET /admin/rooms/{room}/recording",
            "DELETE /admin/rooms/{room}/recording",
            "PUT /admin/rooms/{room}/entry",
            "PUT /admin/rooms/{room}/participants/{participant}/grants",
            "PUT /admin/rooms/{room}/tracks/{track}/muted",
            "PUT /admin/rooms/{room}/waiting/{waiting}",
        ];
        assert_eq!(described, routes.map(String::from).into());
    }

    #[test]
    fn the_description_is_a_valid_document() {
        let api = document_value();
        assert!(api["openapi"].as_str().unwrap().starts_with("3."));
        assert!(api["info"]["title"].is_string() && api["info"]["version"].is_string());
        let mut all = Vec::new();
        walk("#", &api, &mut all);
        for (at, object) in &all {
            if let Some(to) = object.get("$ref") {
                let pointer = to.as_str().unwrap().strip_prefix('#').expect("a local reference");
                assert!(api.pointer(pointer).is_some(), "{at}: nothing at {pointer}");
            }
        }
        let mut ids = BTreeSet::new();
        for (method, path, operation) in operations(&api) {
            let at = format!("{method} {path}");
            assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{at}: id twice");
            assert!(operation["summary"].is_string(), "{at} says not what it does");
            let responses = operation["responses"].as_object().unwrap();
            assert!(!responses.is_empty(), "{at} has no response");
            assert!(responses.values().all(|r| r["description"].is_string()), "{at}");
            let declared: BTreeSet<&str> = operation["parameters"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|p| p["in"] == "path" && p["required"] == true && p["schema"].is_object())
                .map(|p| p["name"].as_str().unwrap())
                .collect();
            let used: BTreeSet<&str> = path
                .split('/')
                .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
                .collect();
            assert_eq!(declared, used, "{at}");
            let schemes = &api["components"]["securitySchemes"];
            for needed in operation["security"].as_array().into_iter().flatten() {
                let known = needed.as_object().unwrap().keys().all(|k| schemes[k].is_object());
                assert!(known, "{at}");
            }
            let takes = takes_token(&path) && method != "OPTIONS";
            assert_eq!(operation["security"].is_array(), takes, "{at}");
        }
    }
}
