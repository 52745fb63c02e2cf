//! The account at the CA: created once, kept in the storage, and shared by all instances.

use std::time::Duration;

use instant_acme::{Account, AccountCredentials, ExternalAccountKey, NewAccount};

use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::order::{to_json, with_nonces};

/// Name of the lock for creating an account. It isn't a host name, so no certificate has it.
const LOCK: &str = "_account";
/// Seconds that an instance waits for another one that creates the account.
const WAIT_SECONDS: u32 = 30;

/// Returns the account, and creates it if there is none.
pub(crate) async fn open(context: &Context, client: &Client) -> Result<Account, Failure> {
    let mut lock = None;
    for _ in 0..WAIT_SECONDS {
        let stored = context.storage.accounts.read(&file_name(context))?;
        let stored = stored.and_then(|content| serde_json::from_slice::<AccountCredentials>(&content).ok());
        if let Some(credentials) = stored {
            let account = Account::builder_with_http(Box::new(client.clone())).from_credentials(credentials);
            return client.check(account.await);
        }
        if lock.is_some() {
            return create(context, client).await;
        }
        lock = context.storage.locks.lock(LOCK)?;
        if lock.is_none() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
    Err(Failure::new(
        "another instance is creating the account at the CA".to_owned(),
        "it is tried again by itself; see the messages of the other instance",
    ))
}

/// Discards the account because the CA doesn't know it, unless another task has replaced it.
pub(crate) fn discard(context: &Context, id: &str) -> Result<(), Failure> {
    let stored = context.storage.accounts.read(&file_name(context))?.unwrap_or_default();
    let stored: serde_json::Value = serde_json::from_slice(&stored).unwrap_or_default();
    if stored.get("id").is_some_and(|stored| stored == id) {
        context.storage.accounts.remove(&file_name(context))?;
    }
    Ok(())
}

async fn create(context: &Context, client: &Client) -> Result<Account, Failure> {
    let options = &context.options;
    let external = match &options.external_account {
        Some(account) => Some(ExternalAccountKey::new(account.kid.clone(), &account.decode()?)),
        None => None,
    };
    let contacts: Vec<String> = options.emails.iter().map(|email| format!("mailto:{email}")).collect();
    let contacts: Vec<&str> = contacts.iter().map(String::as_str).collect();
    let new = NewAccount {
        contact: &contacts,
        terms_of_service_agreed: options.terms_agreed,
        only_return_existing: false,
    };
    let created = with_nonces(async || {
        let builder = Account::builder_with_http(Box::new(client.clone()));
        builder.create(&new, options.directory.clone(), external.as_ref()).await
    });
    let (account, credentials) = client.check(created.await)?;
    context.storage.accounts.write(&file_name(context), &to_json(&credentials))?;
    Ok(account)
}

/// Returns the name of the account's file: the directory's URL with `-` for all but letters, digits and dots.
fn file_name(context: &Context) -> String {
    let url = context.options.directory.trim_start_matches("https://").trim_start_matches('.');
    let allowed = |char: char| if char.is_ascii_alphanumeric() || char == '.' { char } else { '-' };
    format!("{}.json", url.chars().map(allowed).take(200).collect::<String>())
}
