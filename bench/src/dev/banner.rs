//! What a ready stack says: the environment file for scripts, and the lines for a person to paste. Pure text.

use std::fmt::Write as _;

/// Where everything answers, and the keys that open it.
#[derive(Debug, Clone)]
pub struct Stack {
    pub proxy_port: u16,
    pub admin_port: u16,
    pub metrics_port: u16,
    pub mock_port: u16,
    /// Unknown when somebody else bootstrapped the database.
    pub admin_key: Option<String>,
    pub workspace_key: String,
    /// Where the console opens, signed in; once.
    pub sign_in: Option<String>,
    /// With its password, so for the private file alone.
    pub database_url: String,
}

impl Stack {
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.proxy_port)
    }

    fn mock_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.mock_port)
    }

    /// `NAME=value` lines that a shell can `source`.
    pub fn env_file(&self) -> String {
        let mut text = format!(
            "GATEWAY_BASE_URL={}\nADMIN_BASE_URL=http://127.0.0.1:{}/v1\nMETRICS_URL=http://127.0.0.1:{}/metrics\nMOCK_PROVIDER_URL={}\n",
            self.base_url(),
            self.admin_port,
            self.metrics_port,
            self.mock_url(),
        );
        if let Some(key) = &self.admin_key {
            let _ = writeln!(text, "GATEWAY_ADMIN_KEY={key}");
        }
        let _ = writeln!(text, "GATEWAY_WORKSPACE_KEY={}", self.workspace_key);
        let _ = writeln!(text, "DATABASE_URL={}", quoted(&self.database_url));
        text
    }

    /// For a person: addresses, keys and two commands that answer as they stand.
    pub fn welcome(&self, env_file: &str) -> String {
        let admin_key =
            self.admin_key.as_deref().unwrap_or("(made when this database was first started; not known here)");
        format!(
            "\n\
             Portcullis is ready.\n\n\
             \x20 console        {console}\n\
             \x20 base URL       {base}\n\
             \x20 owner key      {admin_key}\n\
             \x20 workspace key  {workspace_key}\n\
             \x20 mock provider  {mock}\n\
             \x20 metrics        http://127.0.0.1:{metrics}/metrics\n\
             \x20 for scripts    source {env_file} (and DATABASE_URL, the database)\n\n\
             A completion:\n\n{plain}\n\n\
             The same as a stream:\n\n{stream}\n\n\
             Ctrl-C stops everything; the data stays.\n",
            console = self.console(),
            base = self.base_url(),
            workspace_key = self.workspace_key,
            mock = self.mock_url(),
            metrics = self.metrics_port,
            plain = self.curl("-sS", ""),
            stream = self.curl("-sSN", r#","stream":true"#),
        )
    }

    fn console(&self) -> String {
        match &self.sign_in {
            Some(link) => format!("{link} (once, within ten minutes)"),
            None => format!("http://localhost:{}/console", self.proxy_port),
        }
    }

    fn curl(&self, flags: &str, more: &str) -> String {
        format!(
            r#"curl {flags} {base}/chat/completions \
  -H 'x-gateway-api-key: {key}' \
  -H 'x-gateway-provider: openai' \
  -H 'x-gateway-custom-host: {mock}' \
  -H 'authorization: Bearer sk-mock' \
  -H 'content-type: application/json' \
  -d '{{"model":"gpt-4o-mini","messages":[{{"role":"user","content":"Hello"}}]{more}}}'"#,
            base = self.base_url(),
            key = self.workspace_key,
            mock = self.mock_url(),
        )
    }
}

/// For a shell; a given URL may have a query.
fn quoted(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+=,".contains(&byte);
    match value.bytes().all(is_plain) {
        true => value.to_owned(),
        false => format!("'{}'", value.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_shell_reads_an_address_as_it_is() {
        for (value, written) in [
            ("postgres://u:p@h:1/d", "postgres://u:p@h:1/d"),
            ("postgres:///d?host=/run&user=u", "'postgres:///d?host=/run&user=u'"),
            ("postgres://u:a'b@h/d", r"'postgres://u:a'\''b@h/d'"),
        ] {
            assert_eq!(quoted(value), written);
        }
    }

    fn stack() -> Stack {
        Stack {
            proxy_port: 1,
            admin_port: 2,
            metrics_port: 3,
            mock_port: 4,
            admin_key: Some("pk_admin".into()),
            workspace_key: "pk_workspace".into(),
            sign_in: Some("http://localhost:1/auth/link#token=t".into()),
            database_url: "postgres://g:p@127.0.0.1:5/gateway".into(),
        }
    }

    #[test]
    fn the_environment_file_names_every_address_and_key_once() {
        let lines = stack().env_file();
        let expected = "GATEWAY_BASE_URL=http://127.0.0.1:1/v1\nADMIN_BASE_URL=http://127.0.0.1:2/v1\nMETRICS_URL=http://127.0.0.1:3/metrics\nMOCK_PROVIDER_URL=http://127.0.0.1:4/v1\nGATEWAY_ADMIN_KEY=pk_admin\nGATEWAY_WORKSPACE_KEY=pk_workspace\nDATABASE_URL=postgres://g:p@127.0.0.1:5/gateway\n";
        assert_eq!(lines, expected);
        let foreign = Stack { admin_key: None, ..stack() };
        assert!(!foreign.env_file().contains("GATEWAY_ADMIN_KEY"));
    }

    #[test]
    fn the_console_opens_by_its_link_which_no_script_is_given() {
        assert!(stack().welcome(".run/env").contains("http://localhost:1/auth/link#token=t"));
        assert!(!stack().env_file().contains("token"));
        let without = Stack { sign_in: None, ..stack() };
        assert!(without.welcome(".run/env").contains("http://localhost:1/console\n"));
    }

    #[test]
    fn the_commands_carry_well_formed_bodies_and_only_the_second_streams() {
        let bodies: Vec<Value> = [stack().curl("-sS", ""), stack().curl("-sSN", r#","stream":true"#)]
            .iter()
            .map(|line| serde_json::from_str(line.rsplit_once("-d '").unwrap().1.trim_end_matches('\'')).unwrap())
            .collect();
        assert_eq!(bodies[0].get("stream"), None);
        assert_eq!(bodies[1]["stream"], true);
    }
}
