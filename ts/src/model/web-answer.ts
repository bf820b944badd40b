/** One request to a web server, and the rule for where its redirects may lead. */
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { requirePublicHost } from './addresses.ts';
import { isLoopbackName, publicSource } from './location.ts';
import { SourceError } from './source-error.ts';

const REDIRECTS: ReadonlySet<number | undefined> = new Set([301, 302, 303, 307, 308]);

export const MAX_REDIRECTS = 5;
/** The longest wait for a connection and the headers of an answer, in milliseconds. */
export const ANSWER_MS = 30_000;

/**
 * Sends a request without a body, and returns the answer, whose body the caller reads or destroys. The user and
 * password in `url` are not sent.
 *
 * @param answerMs - The longest wait for the headers of the answer.
 * @throws the error of the connection, or one that says that there was no answer.
 */
export function answerOf(url: URL, options: RequestOptions, answerMs = ANSWER_MS): Promise<IncomingMessage> {
  const bare = new URL(url);
  bare.username = bare.password = '';
  return new Promise((resolve, reject) => {
    const request = url.protocol === 'https:' ? httpsRequest(bare, options) : httpRequest(bare, options);
    const timer = setTimeout(() => request.destroy(new Error(`no answer within ${answerMs / 1000} s`)), answerMs);
    request.on('response', resolve);
    request.on('error', reject);
    request.on('close', () => {
      clearTimeout(timer);
      // This has no effect when the request was answered or has failed.
      reject(new Error('no answer'));
    });
    request.on('response', () => clearTimeout(timer));
    request.end();
  });
}

/** Returns the place that an answer redirects to; undefined when it is no redirect. */
export function redirectOf({ statusCode, headers }: IncomingMessage): string | undefined {
  return REDIRECTS.has(statusCode) ? headers.location : undefined;
}

interface RedirectRules {
  /** A URL of the server that the user has named, on which a redirect may lead anywhere. */
  readonly own: URL;
  /** Whether a redirect may lead to plain HTTP. */
  readonly allowHttp: boolean;
}

/**
 * Returns the URL that a redirect leads to. Apart from the user's own server, that must be a public address: nobody has
 * chosen it.
 *
 * @throws SourceError when the redirect is not followed.
 */
export function redirectTarget(from: URL, location: string, { own, allowHttp }: RedirectRules): URL {
  if (!URL.canParse(location, from.href)) throw new SourceError('redirects to what is not a URL');
  const url = new URL(location, from);
  const mayBePlain = allowHttp || (from.protocol === 'http:' && isLoopbackName(url.hostname));
  const isSafe = url.protocol === 'https:' || (url.protocol === 'http:' && mayBePlain);
  if (!isSafe) throw new SourceError(`redirects to ${publicSource(url.href)}, which is not https://`);
  if (url.origin !== own.origin) requirePublicHost(url.hostname);
  return url;
}
