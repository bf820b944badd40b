/** The reason why a hub does not give a file, from the status and the `X-Error-…` headers of its answer. */
import type { IncomingMessage } from 'node:http';

export interface Refused {
  readonly answer: Pick<IncomingMessage, 'statusCode' | 'headers'>;
  /** The page of the repository, where its terms are accepted. */
  readonly page: string;
  /** Whether the request had a token. */
  readonly hasToken: boolean;
}

/** Returns the reason as a text, with the advice that follows from it. */
export function refusedBy({ answer: { statusCode = 0, headers }, page, hasToken }: Refused): string {
  const code = headers['x-error-code'];
  const said = String(headers['x-error-message'] ?? '');
  if (code === 'GatedRepo') return gated(page, hasToken);
  if (said === 'Invalid credentials in Authorization header') return 'the hub does not know the token of HF_TOKEN';
  if (code === 'RevisionNotFound') return 'there is no such revision';
  if (code === 'EntryNotFound') return 'there is no such file or folder';
  if (code === 'RepoNotFound' || statusCode === 401) {
    const unless = hasToken ? 'the token of HF_TOKEN may not read it' : 'it is private, which needs HF_TOKEN';
    return `there is no such repository, or ${unless}`;
  }
  return `status ${statusCode}${said === '' ? '' : `: ${said}`}`;
}

function gated(page: string, hasToken: boolean): string {
  if (hasToken) return `the repository is gated, and HF_TOKEN has no access: ask for it at ${page}`;
  return `the repository is gated: accept its terms at ${page}, then set HF_TOKEN`;
}
