import { type CompanyKey, describeCompany } from '../core/company.js';
import { isMusterError, MusterError } from '../core/errors.js';
import type { Secret } from '../core/secret.js';
import type { Transaction } from '../db/connection/transaction.js';
import type { KeyOwner } from '../db/tables/idempotency-keys.js';
import { insertQuarantinedToken, type NewQuarantinedToken, type Successor } from '../db/tables/quarantined-tokens.js';
import type { SealedPair, StoredToken } from '../db/tables/tokens.js';
import { GrantedToken } from '../http/token-source.js';
import type { Cipher } from './cipher.js';
import { readClaims } from './grant-claims.js';

/** A token pair to keep. */
export interface TokenPair extends Omit<SealedPair, 'accessToken' | 'refreshToken'> {
  readonly accessToken: Secret | undefined;
  readonly refreshToken: Secret;
}

/** What an access token says of its grant, beside what is kept of the grant's claims. */
export interface GrantReading {
  /** The keyed hash to keep from now on. Undefined: the token cannot be read. */
  readonly claims: string | undefined;
  /** Whether the claims are those that are kept; undefined where one of the two is not known. */
  readonly isSame: boolean | undefined;
  /** Whether the claims name a person. */
  readonly namesPerson: boolean;
}

/**
 * The tokens of muster.tokens and muster.quarantined_tokens, and the answers of muster.idempotency_keys, which may hold as much: encrypted when they
 * go in, and opened one at a time.
 */
export class Vault {
  readonly #cipher: Cipher;

  constructor(cipher: Cipher) {
    this.#cipher = cipher;
  }

  /** Throws `token_unreadable`. */
  openAccess({ company, accessToken, grantNumber }: StoredToken): GrantedToken {
    if (accessToken === null) throw new MusterError('internal_error', `${describeCompany(company)} has no access token`);
    return new GrantedToken(this.#cipher.open(accessToken, company, 'access_token').reveal(), grantNumber);
  }

  /** Compares what an access token claims with the hash that is kept (`kept`). Never throws: no pair may be lost over it. */
  readGrant(company: CompanyKey, accessToken: Secret, kept: string | null): GrantReading {
    const claims = readClaims(accessToken);
    if (!claims) return { claims: undefined, isSame: undefined, namesPerson: false };
    const isSame = kept === null ? undefined : this.#cipher.isHashOf(kept, claims.text, company);
    return { claims: this.#cipher.hashClaims(claims.text, company), isSame, namesPerson: claims.namesPerson };
  }

  /** Throws `token_unreadable`. */
  openRefresh({ company, refreshToken }: StoredToken): Secret {
    return this.#cipher.open(refreshToken, company, 'refresh_token');
  }

  /** Throws `token_unreadable`. */
  openSuccessor({ refreshToken, ...company }: Successor): Secret {
    return this.#cipher.open(refreshToken, company, 'refresh_token');
  }

  seal(company: CompanyKey, { accessToken, refreshToken, ...times }: TokenPair): SealedPair {
    return {
      ...times,
      accessToken: accessToken ? this.#cipher.seal(accessToken, company, 'access_token') : null,
      refreshToken: this.#cipher.seal(refreshToken, company, 'refresh_token'),
    };
  }

  /** A refresh token for the journal. */
  sealRefresh(company: CompanyKey, refreshToken: Secret): string {
    return this.#cipher.seal(refreshToken, company, 'refresh_token');
  }

  /** The refresh token's ciphertext made with the first key; as it is where it cannot be read. */
  sealAgain(company: CompanyKey, sealed: string): string {
    if (this.#cipher.isCurrent(sealed)) return sealed;
    try {
      return this.#cipher.seal(this.#cipher.open(sealed, company, 'refresh_token'), company, 'refresh_token');
    } catch (error) {
      if (isMusterError(error, 'token_unreadable')) return sealed;
      throw error;
    }
  }

  /** Keeps a refresh token that belongs to no stored connection; returns how many older ones had to go for it. */
  quarantine(tx: Transaction, token: Omit<NewQuarantinedToken, 'sealed'>, refreshToken: Secret): Promise<number> {
    return insertQuarantinedToken(tx, { ...token, sealed: this.#cipher.seal(refreshToken, token.company, 'refresh_token') });
  }

  sealAnswer(answer: string, key: KeyOwner): string {
    return this.#cipher.sealAnswer(answer, key);
  }

  /** Throws `answer_unreadable`. */
  openAnswer(sealed: string, key: KeyOwner): string {
    return this.#cipher.openAnswer(sealed, key);
  }
}
