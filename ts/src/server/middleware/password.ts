/** The operator's guard: the dashboard password, and the further checks of calls that change something. */

import type { Middleware } from 'koa';
import basicAuth from 'koa-basic-auth';
import { HttpFailure } from '../../errors.ts';
import type { Secret } from '../../settings/secret.ts';
import { type ApiKey, requireApiKey } from './api-key.ts';
import { refuseCrossSite } from './caller.ts';
import type { RequestContext, RequestState } from './request.ts';
import type { WrongGuesses } from './wrong-guesses.ts';

interface OperatorParts {
  /** The dashboard password; if undefined, the password check is off. */
  readonly password: Secret | undefined;
  /** The API keys; if empty, the key check is off. */
  readonly apiKeys: readonly ApiKey[];
  readonly guesses: WrongGuesses;
}

/** The guards of the operator's routes. */
export interface Operator {
  /** The guard of routes that only show something. */
  readonly guard: Middleware<RequestState>;
  /**
   * The guard of routes that use the engine or change something. No page of another site may call them, not even one
   * that may ask for decisions; and if the password is off, only callers who could also ask for a decision may.
   */
  readonly action: Middleware<RequestState>;
}

export function createOperator({ password, apiKeys, guesses }: OperatorParts): Operator {
  const guard = requirePassword(password, guesses);
  const ownSite = refuseCrossSite();
  const key = requireApiKey(password ? [] : apiKeys, guesses);
  return { guard, action: (ctx, next) => ownSite(ctx, () => guard(ctx, () => key(ctx, next))) };
}

/**
 * Returns the middleware that lets requests with `password` pass: in Basic auth with any name, or else as `?password=`.
 */
function requirePassword(password: Secret | undefined, guesses: WrongGuesses): Middleware<RequestState> {
  const opens = password && passwordCheck(password);
  return async (ctx, next) => {
    // No cache may keep the operator's pages, and no other site may learn an address that contains the password. No
    // page of another site may load them as a script or an image of its own.
    ctx.set({
      'Cache-Control': 'no-store',
      'Referrer-Policy': 'no-referrer',
      'Cross-Origin-Resource-Policy': 'same-origin',
      'X-Content-Type-Options': 'nosniff',
    });
    if (opens) {
      const isRight = opens(ctx);
      if (isRight === false) await guesses.note(ctx);
      if (isRight !== true) throw wrongPassword();
    }
    await next();
  };
}

const BASIC = /^ *Basic( |$)/i;

/** Returns a function that returns whether a request's password is right; undefined if the request has none. */
function passwordCheck(password: Secret): (ctx: RequestContext) => boolean | undefined {
  // With an empty name in the options, any name is accepted. The library compares passwords in constant time.
  const options = { name: '', pass: password.reveal(), realm: 'svc' };
  const basic = basicAuth(options);
  return (ctx) => {
    if (BASIC.test(ctx.req.headers.authorization ?? '')) return passes(() => basic(ctx, async () => {}));
    const given = new URLSearchParams(ctx.querystring).get('password');
    return given === null ? undefined : password.matches(given);
  };
}

/**
 * Whether `check` does not throw; the library's own 401 is not passed on, because it has another body than this
 * server's.
 */
function passes(check: () => unknown): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}

function wrongPassword(): HttpFailure {
  return new HttpFailure('wrong_password', 'missing or wrong password', { 'WWW-Authenticate': 'Basic realm="svc"' });
}
