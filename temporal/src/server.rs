//! The connection to the Temporal server.

use anyhow::{Context, Result, anyhow, bail};
use temporalio_client::envconfig::LoadClientConfigProfileOptions;
use temporalio_client::grpc::WorkflowService;
use temporalio_client::{Client, ClientOptions, Connection};
use temporalio_common::protos::temporal::api::workflowservice::v1::GetSystemInfoRequest;

/// The first version of the server in which an activity can be started without a workflow.
const OLDEST: (u32, u32) = (1, 31);

/// Connects to the server that Temporal's environment variables and config file name.
///
/// # Errors
/// When it cannot be reached, or is too old.
pub(crate) async fn connect() -> Result<Client> {
    let (connection, options) = ClientOptions::load_from_config(LoadClientConfigProfileOptions::default())
        .map_err(|error| anyhow!("Temporal's config cannot be used: {error}"))?;
    let connection = Connection::connect(connection).await.context(
        "cannot reach the Temporal server; is TEMPORAL_ADDRESS right? To try it here: temporal server start-dev",
    )?;
    let mut client = Client::new(connection, options)?;
    let request = tonic_request(GetSystemInfoRequest::default());
    let version = client.get_system_info(request).await?.into_inner().server_version;
    if version_of(&version).is_some_and(|version| version < OLDEST) {
        bail!("the Temporal server has the version {version}, which has no standalone activities; use 1.31 or newer");
    }
    Ok(client)
}

fn tonic_request<T>(message: T) -> temporalio_client::tonic::Request<T> {
    temporalio_client::tonic::Request::new(message)
}

fn version_of(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_standalone_activities_is_known_by_its_version() {
        assert!(version_of("1.30.4").unwrap() < OLDEST);
        assert!(version_of("1.31.0").unwrap() >= OLDEST && version_of("2.0.0-rc.1").unwrap() >= OLDEST);
        assert_eq!(version_of("dev"), None);
    }
}
