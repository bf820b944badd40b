/** A decision request as commands and programs that work when pasted. They send exactly the bytes of the text. */

interface SnippetOptions {
  /** The scheme, host and port of the server, without a slash at the end. */
  readonly origin: string;
  /** The body of the request. */
  readonly body: string;
  /** Whether the API key is on. The key is read from `SVC_API_KEY` and never written. */
  readonly needsKey: boolean;
}

export interface Snippet {
  readonly name: string;
  readonly text: string;
}

const PATH = '/v1/systemone';

/** Returns the request in each language that the pages show. */
export function snippets(options: SnippetOptions): readonly [Snippet, Snippet, Snippet] {
  return [
    { name: 'curl', text: curl(options) },
    { name: 'TypeScript', text: typescript(options) },
    { name: 'Python', text: python(options) },
  ];
}

function curl({ origin, body, needsKey }: SnippetOptions): string {
  const key = needsKey ? ' \\\n  -H "Authorization: Bearer $SVC_API_KEY"' : '';
  // With --data, curl would read a file if the body starts with @.
  return `curl -sS ${origin}${PATH}${key} \\\n  --data-raw '${body.replaceAll("'", "'\\''")}'`;
}

function typescript({ origin, body, needsKey }: SnippetOptions): string {
  const isRaw = !/`|\$\{|\\$|\r/.test(body);
  const key = needsKey ? `\n  headers: { authorization: \`Bearer \${process.env.SVC_API_KEY}\` },` : '';
  return `const body = ${isRaw ? `String.raw\`${body}\`` : stringLiteral(body)};

const response = await fetch('${origin}${PATH}', {
  method: 'POST',${key}
  body,
});
if (!response.ok) throw new Error(await response.text());
const { answers } = await response.json();
console.log(answers);`;
}

function python({ origin, body, needsKey }: SnippetOptions): string {
  const isRaw = !/"""|["\\]$|\r/.test(body);
  const key = needsKey ? '\n    headers={"Authorization": f"Bearer {os.environ[\'SVC_API_KEY\']}"},' : '';
  return `${needsKey ? 'import os\n\n' : ''}import requests

body = ${isRaw ? `r"""${body}"""` : stringLiteral(body)}

response = requests.post(
    "${origin}${PATH}",${key}
    data=body.encode(),
    timeout=60,
)
response.raise_for_status()
print(response.json()["answers"])`;
}

/**
 * Returns a string literal that is valid in JavaScript and in Python: the two differ in escapes outside the basic
 * plane, where nothing is escaped.
 */
function stringLiteral(text: string): string {
  return JSON.stringify(text);
}
