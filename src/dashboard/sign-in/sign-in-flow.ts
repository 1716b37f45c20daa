import { createHash, randomBytes } from 'node:crypto';

/** How long a person may take at the issuer. */
const FLOW_MS = 10 * 60_000;
/** Browsers keep no larger cookie. */
const LONGEST_NEXT = 1_000;

/**
 * A signing in by OpenID Connect that is under way. All of it follows from one text, which the browser keeps in a cookie while the person is at the issuer: the
 * process keeps nothing, and whoever asks for flows without end fills nothing. The issuer sees hashes alone. A text that was changed, its time
 * above all, has another state, which the issuer did not give back.
 */
export interface SignInFlow {
  readonly text: string;
  readonly state: string;
  readonly nonce: string;
  /** The one of PKCE. */
  readonly verifier: string;
  /** Where the person wanted to go. */
  readonly next: string;
  readonly isOver: boolean;
}

export function beginFlow(next: string, now: number): SignInFlow {
  const kept = next.length > LONGEST_NEXT ? '/' : next;
  const text = [now, randomBytes(32).toString('base64url'), Buffer.from(kept).toString('base64url')].join('.');
  return flowOf(text, now)!;
}

/** The flow that this text is of; undefined for what is none. */
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
    // Another process, whose clock is another, may have begun it.
    isOver: Math.abs(now - Number(begun)) > FLOW_MS,
  };
}
