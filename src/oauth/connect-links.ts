import { createHash } from 'node:crypto';
import type { Clock } from '../core/clock.js';
import { type CompanyKey, type Environment, keyText } from '../core/company.js';
import type { Database } from '../db/database.js';
import type { Transaction } from '../db/transaction.js';
import { Prisma } from '../generated/prisma/client.js';
import { registerSecret } from '../observability/secret-registry.js';
import type { ConnectLinkSigner } from './connect-link-signer.js';
import { endpointOf, type TokenEndpoints } from './token-endpoint.js';

const DAY_MS = 24 * 3_600_000;

/**
 * A link travels by mail or chat to somebody who may be away: shorter than a week and it is dead after a holiday, longer and
 * forgotten mail holds the right to connect. What it starts lives for minutes only.
 */
const LINK_MS = 7 * DAY_MS;

/** Links that are made for whoever looks live for one to two of these. */
const SHOWN_MS = LINK_MS / 2;

/** How long an expired link is remembered, so that its page can say so. */
const REMEMBERED_MS = 90 * DAY_MS;

export interface ConnectLink {
  readonly id: string;
  readonly tokenHash: string;
  readonly environment: Environment;
  /** Null: whichever company is chosen on the consent screen. */
  readonly companyId: string | null;
  readonly fence: number;
  readonly expiresAt: Date;
  readonly completedAt: Date | null;
}

interface ConnectLinkParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly signer: ConnectLinkSigner;
  readonly endpoints: TokenEndpoints;
  readonly publicUrl: URL;
}

const COLUMNS = Prisma.sql`
  id::text, token_hash AS "tokenHash", environment, company_id::text AS "companyId", fence,
  expires_at AS "expiresAt", completed_at AS "completedAt"`;

/** The links with which customers start the authorization flow. Of a token, only its hash is kept. */
export class ConnectLinks {
  readonly #parts: ConnectLinkParts;

  constructor(parts: ConnectLinkParts) {
    this.#parts = parts;
  }

  /** A new link, good for one authorization. Throws `environment_not_configured`. */
  async create({ environment, companyId }: ConnectLinkRequest): Promise<{ url: string; expiresAt: Date }> {
    const { db, clock, endpoints, signer } = this.#parts;
    endpointOf(endpoints, environment);
    const id = crypto.randomUUID();
    const expiresAt = new Date(clock.now() + LINK_MS);
    const token = this.#token(id);
    await db.prisma.$executeRaw`
      INSERT INTO muster.connect_links (id, token_hash, environment, company_id, expires_at)
      VALUES (${id}::uuid, ${digest(signer.token(id))}, ${environment}, ${companyId ?? null}::uuid, ${expiresAt})`;
    await db.prisma.$executeRaw`
      DELETE FROM muster.connect_links WHERE expires_at < ${new Date(clock.now() - REMEMBERED_MS)}`;
    return { url: this.#url(token), expiresAt };
  }

  /**
   * For each of the companies that must authorize again, the address that starts it, by `environment/company_id`. It is the same one
   * however often it is asked for, until the company has authorized again or half a week has passed; there is none for
   * an environment that is not configured.
   */
  async reauthorizationUrls(companies: readonly CompanyKey[]): Promise<ReadonlyMap<string, string>> {
    const { db, clock, endpoints } = this.#parts;
    const asked = companies.filter(({ environment }) => endpoints[environment]);
    if (asked.length === 0) return new Map();
    const period = Math.floor(clock.now() / SHOWN_MS);
    const expiresAt = new Date((period + 2) * SHOWN_MS);
    // What was lost is named by the connection and by the fence, which every stored pair moves.
    const blocked = await db.prisma.$queryRaw<(CompanyKey & { change: string })[]>`
      SELECT environment, company_id::text AS "companyId", concat_ws('|', c.id, t.fence) AS change
      FROM muster.connections c LEFT JOIN muster.tokens t USING (environment, company_id) JOIN unnest(${asked.map(({ environment }) => environment)}::text[], ${asked.map(({ companyId }) => companyId)}::uuid[])
        AS asked(environment, company_id) USING (environment, company_id)
      WHERE c.reauthorization_reason IS NOT NULL`;
    const links = blocked.map(({ change, ...company }) => {
      const id = this.#parts.signer.linkId(`${change}|${period}`);
      return { ...company, id, token: this.#token(id) };
    });
    if (links.length > 0)
      await db.prisma.$executeRaw`
        INSERT INTO muster.connect_links (id, token_hash, environment, company_id, expires_at)
        SELECT *, ${expiresAt}::timestamptz FROM unnest(${links.map(({ id }) => id)}::uuid[], ${links.map(({ token }) => digest(token))}::text[],
          ${links.map(({ environment }) => environment)}::text[], ${links.map(({ companyId }) => companyId)}::uuid[])
        ON CONFLICT DO NOTHING`;
    return new Map(links.map((link) => [keyText(link), this.#url(link.token)]));
  }

  async findByToken(token: string): Promise<ConnectLink | undefined> {
    if (!TOKEN.test(token)) return undefined;
    return this.#find(Prisma.sql`token_hash = ${digest(token)}`);
  }

  find(id: string): Promise<ConnectLink | undefined> {
    return this.#find(Prisma.sql`id = ${id}::uuid`);
  }

  /** The link's address, where it is still good; undefined, too, when it was made with a key that is no longer the current one. */
  urlOf({ id, tokenHash, expiresAt, completedAt }: ConnectLink): string | undefined {
    const token = this.#token(id);
    const isGood = completedAt === null && expiresAt.getTime() > this.#parts.clock.now() && digest(token) === tokenHash;
    return isGood ? this.#url(token) : undefined;
  }

  /**
   * Spends every state that was signed for this fence: true for one caller, however many come at once. An exchange that is
   * under way for an earlier fence can no longer complete the link.
   */
  async advance(id: string, fence: number): Promise<boolean> {
    const advanced = await this.#parts.db.prisma.$executeRaw`
      UPDATE muster.connect_links SET fence = fence + 1 WHERE id = ${id}::uuid AND fence = ${fence} AND completed_at IS NULL`;
    return advanced > 0;
  }

  /** Spends the link, for the exchange that advanced it from this fence. Harmless when repeated. */
  async complete(tx: Transaction, id: string, fence: number): Promise<boolean> {
    const completed = await tx.$executeRaw`
      UPDATE muster.connect_links SET completed_at = ${new Date(this.#parts.clock.now())}
      WHERE id = ${id}::uuid AND fence = ${fence + 1}`;
    return completed > 0;
  }

  async #find(condition: Prisma.Sql): Promise<ConnectLink | undefined> {
    const [link] = await this.#parts.db.prisma.$queryRaw<ConnectLink[]>`
      SELECT ${COLUMNS} FROM muster.connect_links WHERE ${condition}`;
    return link;
  }

  #token(id: string): string {
    const token = this.#parts.signer.token(id);
    registerSecret(token);
    return token;
  }

  #url(token: string): string {
    return `${this.#parts.publicUrl.href.replace(/\/$/, '')}/connect/${token}`;
  }
}

export interface ConnectLinkRequest {
  readonly environment: Environment;
  readonly companyId?: string | undefined;
}

const TOKEN = /^[\w-]{43}$/;

function digest(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}
