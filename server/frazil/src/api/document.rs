//! The OpenAPI document: what the handlers say of themselves, and what all operations have in common.

use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Components, ContentBuilder, HeaderBuilder, InfoBuilder, License, ObjectBuilder, OpenApi, OpenApiBuilder, Ref,
    RefOr, Required, Response, ResponseBuilder, Server, Type,
};
use utoipa::{PartialSchema, ToSchema};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::api::error::{ErrorModel, IcebergErrorResponse};
use crate::api::iceberg::oauth;

const TITLE: &str = "Frazil";

const ABOUT: &str = "An Apache Iceberg REST catalog. Every answer that is not a success has the shape of \
    `IcebergErrorResponse`; answers to HEAD have no body.";

/// What any operation may answer.
const ANYWHERE: [(&str, &str); 5] = [
    ("400", "The request is malformed, or breaks a rule of the table format"),
    ("404", "Something that the path names does not exist"),
    ("429", "Too many requests are under way; nothing was done"),
    ("500", "A fault of the server; of a change it is not known whether it was applied"),
    ("503", "The server cannot answer now; nothing was changed"),
];

/// What an operation may answer besides where callers are asked who they are.
const OF_CALLERS: [(&str, &str); 1] = [("401", "The request brings no access token that this server takes")];

/// What anybody may ask, whoever they are.
const OPEN: [&str; 4] = ["/health/live", "/health/ready", "/openapi.yaml", oauth::PATH];

/// How the document calls an access token.
const BEARER: &str = "bearer";

/// What an operation may answer besides that waits for a body, if only to pass over it.
const WITH_BODY: [(&str, &str); 2] =
    [("408", "The body did not arrive in time"), ("413", "The body is larger than this operation takes")];

/// What an operation may answer besides that reads its body.
const OF_CONTENT: [(&str, &str); 1] = [("415", "The body has a Content-Encoding other than gzip")];

/// What a change may answer besides.
const OF_CHANGES: [(&str, &str); 1] =
    [("409", "The change does not fit the state of the catalog; nothing was changed")];

/// What a change may answer besides that a client can name with a key.
const OF_KEYS: [(&str, &str); 1] =
    [("422", "The Idempotency-Key was used for another request, or the request contradicts itself")];

/// Below these roots changes take an `Idempotency-Key`.
const KEYED: [&str; 2] = ["/v1/", "/coordination/v1/"];

/// One operation of a document.
pub struct Listed<'a> {
    pub method: &'static str,
    pub path: &'a str,
    pub operation: &'a Operation,
}

/// The document before any operation.
pub fn head() -> OpenApi {
    let license = License::new("Apache-2.0");
    let info = InfoBuilder::new().title(TITLE).version(env!("CARGO_PKG_VERSION")).description(Some(ABOUT));
    // A server may ask nobody who they are.
    let security = [SecurityRequirement::new(BEARER, [""; 0]), SecurityRequirement::default()];
    let head = OpenApiBuilder::new().info(info.license(Some(license)).build()).security(Some(security));
    let mut head = head.build();
    let components = head.components.get_or_insert_with(Components::new);
    let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    components.security_schemes.insert(BEARER.to_owned(), bearer.into());
    components.schemas.insert(ErrorModel::name().into_owned(), ErrorModel::schema());
    components.schemas.insert(IcebergErrorResponse::name().into_owned(), IcebergErrorResponse::schema());
    head
}

/// The whole document of this server.
pub fn document() -> OpenApi {
    let mut document = crate::api::routes().into_openapi();
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in slots(item) {
            if let Some(operation) = operation {
                complete(method, path, operation);
            }
        }
    }
    document
}

/// The whole document as it is served, and kept in `openapi/frazil.yaml`.
pub fn yaml() -> String {
    to_yaml(&document())
}

/// The whole document of a server with a base path.
pub fn yaml_below(base_path: &str) -> String {
    let mut document = document();
    if !base_path.is_empty() {
        document.servers = Some(vec![Server::new(base_path)]);
    }
    to_yaml(&document)
}

fn to_yaml(document: &OpenApi) -> String {
    document.to_yaml().expect("the document has no key that YAML cannot write")
}

/// The operations in the order of their paths.
pub fn operations(document: &OpenApi) -> impl Iterator<Item = Listed<'_>> {
    document.paths.paths.iter().flat_map(|(path, item)| {
        let methods = [
            ("GET", &item.get),
            ("HEAD", &item.head),
            ("POST", &item.post),
            ("PUT", &item.put),
            ("DELETE", &item.delete),
        ];
        methods.into_iter().filter_map(move |(method, operation)| {
            operation.as_ref().map(|operation| Listed { method, path, operation })
        })
    })
}

/// The document as pages, made of files in this binary. They find it wherever a proxy or a base path puts them.
pub fn swagger_ui() -> SwaggerUi {
    SwaggerUi::new("/docs").config(Config::from("../openapi.yaml"))
}

fn slots(item: &mut PathItem) -> [(&'static str, Option<&mut Operation>); 5] {
    [
        ("GET", item.get.as_mut()),
        ("HEAD", item.head.as_mut()),
        ("POST", item.post.as_mut()),
        ("PUT", item.put.as_mut()),
        ("DELETE", item.delete.as_mut()),
    ]
}

fn complete(method: &str, path: &str, operation: &mut Operation) {
    operation.operation_id = operation.operation_id.take().map(|handler| camel_case(&handler));
    let mut parameters: Vec<Parameter> = path_parameters(path).collect();
    let is_open = OPEN.contains(&path);
    let takes_body = matches!(method, "POST" | "PUT" | "DELETE");
    let changes = takes_body && !is_open;
    let keyed = changes && KEYED.iter().any(|root| path.starts_with(root));
    if keyed {
        parameters.push(idempotency_key());
    }
    operation.parameters.get_or_insert_default().extend(parameters.into_iter().map(RefOr::T));
    let mut answers = ANYWHERE.to_vec();
    if takes_body {
        answers.extend(WITH_BODY);
    }
    if changes {
        answers.extend(OF_CHANGES);
    }
    match is_open {
        true => operation.security = Some(Vec::new()),
        false => answers.extend(OF_CALLERS),
    }
    if keyed {
        answers.extend(OF_KEYS);
    }
    if operation.request_body.is_some() {
        answers.extend(OF_CONTENT);
    }
    for (status, why) in answers {
        let told = operation.responses.responses.entry(status.to_owned());
        told.or_insert_with(|| RefOr::T(ResponseBuilder::new().description(why).build()));
    }
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response {
            complete_response(method, status, response);
        }
    }
}

/// Failures have Iceberg's error shape, save where they say another one or have no body at all.
fn complete_response(method: &str, status: &str, response: &mut Response) {
    let failed = status.starts_with('4') || status.starts_with('5');
    if failed && method != "HEAD" && response.content.is_empty() {
        let schema = Ref::from_schema_name(IcebergErrorResponse::name());
        response
            .content
            .insert("application/json".to_owned(), ContentBuilder::new().schema(Some(schema)).build().into());
    }
    if matches!(status, "429" | "503") {
        let seconds = ObjectBuilder::new().schema_type(Type::Integer).build();
        let header =
            HeaderBuilder::new().schema(Some(seconds)).description(Some("When to come back, in seconds")).build();
        response.headers.insert("Retry-After".to_owned(), header.into());
    }
}

fn path_parameters(path: &str) -> impl Iterator<Item = Parameter> + use<'_> {
    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')).map(|name| {
        let about = match name {
            "prefix" | "warehouse" => "The name of the warehouse",
            "namespace" => "The levels of the namespace, each percent-encoded, with %1F between them",
            "table" => "The name of the table, percent-encoded",
            "view" => "The name of the view, percent-encoded",
            "writer" => "The id of the writer, percent-encoded",
            "attempt" => "The Idempotency-Key of the request, a UUID, or the id of its snapshot, an integer",
            "function" => "The name of the function, percent-encoded",
            _ => "A name, percent-encoded",
        };
        string_parameter(name, ParameterIn::Path, Required::True, about)
    })
}

fn idempotency_key() -> Parameter {
    let about = "A UUID that names this change: sent again with the same key it is done once, and answered alike";
    string_parameter("Idempotency-Key", ParameterIn::Header, Required::False, about)
}

fn string_parameter(name: &str, place: ParameterIn, required: Required, about: &str) -> Parameter {
    let text = ObjectBuilder::new().schema_type(Type::String).build();
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(required)
        .description(Some(about))
        .schema(Some(text))
        .build()
}

/// Handlers are named like the operations of the spec, in Rust's spelling.
fn camel_case(handler: &str) -> String {
    let mut words = handler.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(word.len().min(1));
        name + &initial.to_uppercase() + rest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_named_as_in_the_spec() {
        assert_eq!(camel_case("load_namespace_metadata"), "loadNamespaceMetadata");
        assert_eq!(camel_case("ready"), "ready");
    }

    #[test]
    fn every_operation_tells_every_failure_it_can_meet() {
        let document = document();
        for Listed { method, path, operation } in operations(&document) {
            for status in ["400", "404", "429", "500", "503"] {
                assert!(operation.responses.responses.contains_key(status), "{method} {path} {status}");
            }
        }
    }

    #[test]
    fn every_name_of_a_path_is_a_parameter() {
        let document = document();
        let all = operations(&document).filter(|listed| listed.path.contains("{namespace}"));
        for Listed { method, path, operation } in all {
            let named = |name: &str| {
                let is_it =
                    |parameter: &RefOr<Parameter>| matches!(parameter, RefOr::T(parameter) if parameter.name == name);
                operation.parameters.iter().flatten().any(is_it)
            };
            assert!(named("prefix") && named("namespace"), "{method} {path}");
        }
    }
}
