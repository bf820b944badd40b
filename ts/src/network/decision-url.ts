/** The address at which another server decides, and the key for it. */
import { WrongUsage } from '../refusal.ts';
import { socketIn } from './address.ts';
import { socketUrl } from './reach.ts';

/**
 * Returns the address of `POST /v1/systemone` at the server `url`, which `where` on the command line names: an HTTP
 * address, or `unix:/PATH`.
 *
 * @throws WrongUsage when `url` is neither.
 */
export function decisionUrl(url: string, where = '--url'): URL {
  const socket = socketIn(url);
  if (socket !== undefined) return new URL('v1/systemone', socketUrl(socket));
  const base = URL.canParse(url) ? new URL(url) : undefined;
  if (base?.protocol !== 'http:' && base?.protocol !== 'https:') {
    throw new WrongUsage(
      `${where}: must be the address of a server, such as http://127.0.0.1:21118 or unix:/run/svc/svc.sock`,
    );
  }
  return new URL('v1/systemone', `${base.origin}${base.pathname.replace(/\/*$/, '/')}`);
}

/** A key, and the place where it was set. */
export interface SetKey {
  readonly origin: string;
  reveal(): string;
}

/**
 * Returns the headers of a decision request to another server. A key in `svc.json` is not sent: it belongs to the
 * server of this machine, and the other server may be anybody's.
 */
export function decisionHeaders({ apiKey }: { readonly apiKey: readonly SetKey[] }): Record<string, string> {
  const key = apiKey.find(({ origin }) => origin === 'SVC_API_KEY');
  return { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key.reveal()}` }) };
}
