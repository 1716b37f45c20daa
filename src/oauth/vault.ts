import { type CompanyKey, describeCompany } from '../core/company.js';
import { isMusterError, MusterError } from '../core/errors.js';
import type { Secret } from '../core/secret.js';
import type { Transaction } from '../db/connection/transaction.js';
import type { KeyOwner } from '../db/tables/idempotency-keys.js';
import { insertQuarantinedToken, type NewQuarantinedToken } from '../db/tables/quarantined-tokens.js';
import type { SealedPair, StoredToken } from '../db/tables/tokens.js';
import { GrantedToken } from '../http/token-source.js';
import type { Cipher } from './cipher.js';
import { readClaims } from './grant-claims.js';

/** A token pair to keep. */
export interface TokenPair extends Omit<SealedPair, 'accessToken' | 'refreshToken'> {
  readonly accessToken: Secret | undefined;
  readonly refreshToken: Secret;
}

/** The claims of an access token, compared with the stored hash of its grant's claims. */
export interface GrantReading {
  /** The keyed hash to store. Undefined if the token cannot be read. */
  readonly claims: string | undefined;
  /** Whether the claims match the stored hash; undefined if one of the two is unknown. */
  readonly isSame: boolean | undefined;
  /** The claims name a person. */
  readonly namesPerson: boolean;
}

/**
 * Encrypts the tokens of muster.tokens and muster.quarantined_tokens, and the answers of muster.idempotency_keys, which may hold tokens; decrypts them one
 * at a time.
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

  /** Compares the claims of an access token with the stored hash (`kept`). Never throws, because no pair may be lost for it. */
  readGrant(company: CompanyKey, accessToken: Secret, kept: string | null): GrantReading {
    const claims = readClaims(accessToken);
    if (!claims) return { claims: undefined, isSame: undefined, namesPerson: false };
    const isSame = kept === null ? undefined : this.#cipher.isHashOf(kept, claims.text, company);
    return { claims: this.#cipher.hashClaims(claims.text, company), isSame, namesPerson: claims.namesPerson };
  }

  /** Throws `token_unreadable`. */
  openRefresh({ company, refreshToken }: Pick<StoredToken, 'company' | 'refreshToken'>): Secret {
    return this.#cipher.open(refreshToken, company, 'refresh_token');
  }

  seal(company: CompanyKey, { accessToken, refreshToken, ...times }: TokenPair): SealedPair {
    return {
      ...times,
      accessToken: accessToken ? this.#cipher.seal(accessToken, company, 'access_token') : null,
      refreshToken: this.#cipher.seal(refreshToken, company, 'refresh_token'),
    };
  }

  /** Encrypts a refresh token for the journal. */
  sealRefresh(company: CompanyKey, refreshToken: Secret): string {
    return this.#cipher.seal(refreshToken, company, 'refresh_token');
  }

  /** Encrypts the refresh token with the first key; an unreadable ciphertext is returned unchanged. */
  sealAgain(company: CompanyKey, sealed: string): string {
    if (this.#cipher.isCurrent(sealed)) return sealed;
    try {
      return this.#cipher.seal(this.#cipher.open(sealed, company, 'refresh_token'), company, 'refresh_token');
    } catch (error) {
      if (isMusterError(error, 'token_unreadable')) return sealed;
      throw error;
    }
  }

  /** Stores a refresh token that belongs to no stored connection; returns the number of older ones removed for it. */
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
