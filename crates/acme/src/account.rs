//! The account at the CA: created once, kept in the storage, and shared by all instances.

use std::time::Duration;

use instant_acme::{Account, AccountCredentials, Error, ExternalAccountKey, NewAccount};
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::lease::Lease;
use crate::order::with_nonces;

/// The content of an account's file.
#[derive(Serialize, Deserialize)]
struct StoredAccount {
    contacts: Vec<String>,
    credentials: AccountCredentials,
}

/// Name of the lease for creating or changing an account. It has no domain, so no certificate has it.
const LEASE: &str = "account";
/// Seconds that an instance waits for another one that creates the account.
const WAIT_SECONDS: u32 = 30;

/// Returns the account, and creates it if there is none.
pub(crate) async fn open(context: &Context, client: &Client) -> Result<Account, Failure> {
    let folder = &context.storage.accounts;
    let file = file_name(context.options.directory.url());
    let contacts: Vec<String> =
        context.options.emails.iter().map(|email| format!("mailto:{email}")).collect();
    let failed = |error: &Error| Failure::of_request(error, client.retry_after());
    let mut lease = None;
    for _ in 0..WAIT_SECONDS {
        let stored =
            folder.read(&file)?.and_then(|content| serde_json::from_slice::<StoredAccount>(&content).ok());
        match stored {
            Some(stored) if stored.contacts == contacts => {
                return builder(client)
                    .from_credentials(stored.credentials)
                    .await
                    .map_err(|error| failed(&error));
            }
            Some(stored) if lease.is_some() => return update(context, client, &file, stored, contacts).await,
            None if lease.is_some() => return create(context, client, &file, contacts).await,
            _ => {}
        }
        lease = Lease::take(&context.storage.locks, LEASE, &context.owner, context.now())?;
        if lease.is_none() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
    Err(Failure::new(
        "another instance is creating the account at the CA".to_owned(),
        "it is tried again by itself; see the messages of the other instance",
    ))
}

/// Discards the stored account, because the CA doesn't know it.
pub(crate) fn discard(context: &Context) -> Result<(), Failure> {
    Ok(context.storage.accounts.remove(&file_name(context.options.directory.url()))?)
}

async fn create(
    context: &Context,
    client: &Client,
    file: &str,
    contacts: Vec<String>,
) -> Result<Account, Failure> {
    let options = &context.options;
    let external = match &options.external_account {
        Some(account) => Some(ExternalAccountKey::new(account.kid.clone(), &account.decode()?)),
        None => None,
    };
    let contact: Vec<&str> = contacts.iter().map(String::as_str).collect();
    let new = NewAccount {
        contact: &contact,
        terms_of_service_agreed: options.terms_agreed,
        only_return_existing: false,
    };
    let url = options.directory.url();
    let (account, credentials) =
        with_nonces(async || builder(client).create(&new, url.to_owned(), external.as_ref()).await)
            .await
            .map_err(|error| Failure::of_request(&error, client.retry_after()))?;
    write(context, file, &StoredAccount { contacts, credentials })?;
    Ok(account)
}

/// Changes the e-mail addresses of an account.
async fn update(
    context: &Context,
    client: &Client,
    file: &str,
    stored: StoredAccount,
    contacts: Vec<String>,
) -> Result<Account, Failure> {
    let failed = |error: Error| Failure::of_request(&error, client.retry_after());
    let copy =
        serde_json::to_vec(&stored).and_then(|content| serde_json::from_slice::<StoredAccount>(&content));
    let copy = copy.map_err(|error| failed(Error::Json(error)))?;
    let account = builder(client).from_credentials(stored.credentials).await.map_err(failed)?;
    let contact: Vec<&str> = contacts.iter().map(String::as_str).collect();
    with_nonces(async || account.update_contacts(&contact).await).await.map_err(failed)?;
    write(context, file, &StoredAccount { contacts, ..copy })?;
    Ok(account)
}

fn write(context: &Context, file: &str, account: &StoredAccount) -> Result<(), Failure> {
    let content = serde_json::to_vec(account).unwrap_or_default();
    context.storage.accounts.write(file, &content).map_err(|error| error.into_failure("write"))
}

fn builder(client: &Client) -> instant_acme::AccountBuilder {
    Account::builder_with_http(Box::new(client.clone()))
}

/// Returns the file's name of a directory's account: its URL with `-` for other characters than letters, digits and dots.
fn file_name(directory: &str) -> String {
    let url = directory.trim_start_matches("https://");
    let name = url.chars().map(|char| if char.is_ascii_alphanumeric() || char == '.' { char } else { '-' });
    let name: String = name.take(200).collect();
    format!("{}.json", name.trim_start_matches('.'))
}
