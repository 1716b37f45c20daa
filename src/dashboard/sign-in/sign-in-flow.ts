import { createHash, randomBytes } from 'node:crypto';

/** How long a person may take at the issuer. */
const FLOW_MS = 10 * 60_000;
/** A longer path would not fit into a cookie. */
const LONGEST_NEXT = 1_000;

/**
 * A sign-in by OpenID Connect under way. Everything derives from one text, which the browser keeps in a cookie while the person is at the
 * issuer: the process stores nothing, so that endless flows fill nothing. The issuer sees only hashes. A changed text, for example with
 * another time, has another state than the one that the issuer returns.
 */
export interface SignInFlow {
  readonly text: string;
  readonly state: string;
  readonly nonce: string;
  /** The code verifier of PKCE. */
  readonly verifier: string;
  /** The page that the person wanted. */
  readonly next: string;
  readonly isOver: boolean;
}

export function beginFlow(next: string, now: number): SignInFlow {
  const kept = next.length > LONGEST_NEXT ? '/' : next;
  const text = [now, randomBytes(32).toString('base64url'), Buffer.from(kept).toString('base64url')].join('.');
  return flowOf(text, now)!;
}

/** The flow of this text; undefined if the text is not one of a flow. */
export function flowOf(text: string, now: number): SignInFlow | undefined {
  const [, begun, next] = /^(\d{1,15})\.[\w-]{43}\.([\w-]*)$/.exec(text) ?? [];
  if (begun === undefined || next === undefined) return undefined;
  const hash = (part: string) => createHash('sha256').update(`${part}\0${text}`).digest('base64url');
  return {
    text,
    state: hash('state'),
    nonce: hash('nonce'),
    verifier: hash('verifier'),
    next: Buffer.from(next, 'base64url').toString(),
    // Another process with another clock may have begun it.
    isOver: Math.abs(now - Number(begun)) > FLOW_MS,
  };
}
