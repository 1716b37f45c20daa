import type { CompanyKey } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { Secret } from '../core/secret.js';

/**
 * Where requests of one company get their access token. `http` declares it, the manager of access tokens implements it.
 * `get` and `renew` throw MusterError `reauthorization_required` when a person must act first.
 */
export interface TokenSource {
  /** Path of the company's own record, which tells whether a token that a list refuses is refused everywhere. Without it, no 401 ends an authorization. */
  readonly recordPath?: string;
  /** A token that is still valid for a while; renews first when it is about to expire. */
  get(): Promise<Secret>;
  /**
   * After a 401 to `stale`: renews only if `stale` is still the current token, so that many requests side by side
   * that all saw the 401 cause one renewal. `unless`: returns `stale` itself where another one would be no better, since it was
   * stored less than a minute ago (`new`), or is known to be refused by single lists alone (`refused-alone`).
   */
  renew(stale: Secret, unless?: 'new' | 'refused-alone'): Promise<Secret>;
  /**
   * After a 401 to a list and to the company's own record with a token that was just renewed: a person must authorize again. Throws `token_busy` where that does not
   * follow: it is the first time, or the first was less than 30 seconds ago; or a newer token was stored since, or is being fetched, or this one is older than a minute or has expired.
   */
  refused(token: Secret): Promise<void>;
  /** Absent: the company's own record alone judges a 401. */
  readonly evidence?: TokenEvidence;
}

/** The evidence that earlier answers of the API to one company's tokens are for a later 401. */
export interface TokenEvidence {
  /** The API took a token. `witness`: the address, if it may be asked again to tell whether a later token is refused everywhere. */
  taken(witness?: string): Promise<void> | undefined;
  /** The address that took a token last, as far as this process knows, or as another one has kept it. */
  witness(): Promise<string | undefined>;
  /** The company's own record refuses a token that the witness takes: other processes need the witness, too. */
  keep(witness: string): Promise<void>;
  /** Whether a token that was just renewed was refused everywhere, as far as this process knows, and none was taken since. */
  readonly isRefused: boolean;
  /** Some list alone refuses this token; undefined: no token is known of which that is so. */
  recordRefusedAlone(token: Secret | undefined): void;
}

export function recordPathOf({ companyId }: Pick<CompanyKey, 'companyId'>): string {
  return `/api/companies/${companyId}`;
}

/** An access token of which it is known under which of its company's grants it was given. */
export class GrantedToken extends Secret {
  /** Number of the grant in its connection. */
  readonly grantNumber: number;

  constructor(value: string, grantNumber: number) {
    super(value);
    this.grantNumber = grantNumber;
  }
}

/**
 * The tokens of one grant alone: what they fetch is what one person may see. `get` and `renew` throw `grant_changed` once the company has a later grant. A token
 * that was kept in memory from before this grant is not used.
 */
export function tokensOfGrant(tokens: TokenSource, grantNumber: number): TokenSource {
  const require = async (token: Secret): Promise<Secret> => {
    if (!(token instanceof GrantedToken) || token.grantNumber === grantNumber) return token;
    if (token.grantNumber > grantNumber) throw grantChanged();
    const newer = await tokens.renew(token);
    if (newer instanceof GrantedToken && newer.grantNumber !== grantNumber) throw grantChanged();
    return newer;
  };
  return {
    ...(tokens.recordPath !== undefined && { recordPath: tokens.recordPath }),
    get: async () => require(await tokens.get()),
    renew: async (stale, options) => require(await tokens.renew(stale, options)),
    refused: (token) => tokens.refused(token),
    ...(tokens.evidence && { evidence: tokens.evidence }),
  };
}

function grantChanged(): MusterError {
  return new MusterError(
    'grant_changed',
    'The company was authorized again while its lists were read, or its rights have changed: what another grant may see is read from the start.',
  );
}
