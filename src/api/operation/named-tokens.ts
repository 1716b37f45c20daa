import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Database } from '../../db/connection/database.js';
import { inTransaction } from '../../db/connection/transaction.js';
import {
  countNamedTokens,
  insertNamedToken,
  listNamedTokens,
  type NamedTokenRow,
  ROLES,
  revokeNamedToken,
  TOKEN_ORDERS,
} from '../../db/tables/named-tokens.js';
import { CONNECT_LINK } from '../../oauth/flow-record.js';
import { registerSecret } from '../../observability/secret-registry.js';
import { auditedRefusal, recordDone } from '../plumbing/audit.js';
import { type Authenticator, newToken, tokenHash } from '../plumbing/authenticator.js';
import { ADMIN } from '../plumbing/caller.js';
import { countedPageOf, IdParams, listQuery, presentPage, presentTime, SearchText, SortOrder, Time } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

/** The audit knows callers by their names: no token may pass for another actor, or for a part of Muster. */
const RESERVED: ReadonlySet<string> = new Set([
  ADMIN.name,
  CONNECT_LINK.name,
  'api',
  'muster',
  'schedule',
  'scraper',
  'system',
  'worker',
]);

const RoleName = z.enum(ROLES);

/**
 * Latin letters of European languages, except letters that look like others (ı, ĸ, ŉ, ſ). A letter of another alphabet or width may look like one of
 * these, and pass for another name.
 */
const NAME = /^(?![ \d._@+-])(?:[a-z\d ._@+-]|(?![×÷ĸŉſı])[À-ž])+$/i;
const IsoTime = z.iso.datetime({ offset: true });

const NewToken = z.strictObject({
  name: z
    .string()
    .normalize('NFC')
    .min(1)
    .max(100, 'must not have more than 100 characters')
    .refine(
      (name) => NAME.test(name),
      'must begin with a letter, and have Latin letters, digits, single spaces and . _ @ + - alone',
    )
    .refine((name) => name.trimEnd() === name && !name.includes('  '), 'must not end with a space, nor have two in a row')
    .refine((name) => !RESERVED.has(name.toLowerCase()), 'is kept for another actor of the audit: choose another one')
    .describe(
      'Who it is for; the audit shows it. It begins with a letter, and has Latin letters, digits, single spaces and . _ @ + - alone. One living token has it, whatever the case of its letters.',
    ),
  role: RoleName,
  expires_at: z
    .string()
    .refine((text) => IsoTime.safeParse(text).success, 'must be a time with its zone, for example 2030-01-31T12:00:00Z')
    .transform((text) => new Date(text))
    .refine((at) => at.getTime() > Date.now(), 'lies in the past')
    .exactOptional()
    .meta({ format: 'date-time', description: 'It never expires unless said.' }),
});

const NamedToken = z
  .object({
    id: z.string(),
    name: z.string(),
    role: RoleName,
    created_at: Time,
    created_by: z.string(),
    expires_at: Time.nullable().describe('null for one that never expires.'),
    last_used_at: Time.nullable().describe('Exact to a minute; null for one that was never used.'),
  })
  .meta({ id: 'NamedToken', description: 'A token of a person or a program; never the token itself.' });
export type NamedTokenModel = z.output<typeof NamedToken>;

export const CreatedToken = z
  .object({
    id: z.string(),
    name: z.string(),
    role: RoleName,
    token: z.string().describe('Shown this once: only its hash is kept.'),
    expires_at: Time.nullable(),
  })
  .meta({ id: 'CreatedToken' });

const TokenQuery = listQuery({
  q: SearchText.exactOptional().describe('Part of the name, in any letter case and with or without diacritics.'),
  sort: z.enum(TOKEN_ORDERS).exactOptional().describe('`made`, the newest first, unless given.'),
  order: SortOrder,
});

const { viewer, admin } = operationsOf('tokens');

interface NamedTokenDependencies {
  readonly db: Database;
  readonly authenticator: Pick<Authenticator, 'forget'>;
}

/** Tokens for people and programs, each with a name and a role. */
export function namedTokenRoutes({ db, authenticator }: NamedTokenDependencies): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/tokens',
      viewer('listTokens', 'List the named tokens, newest first', {
        description: 'Includes expired tokens until they are deleted; without the token of MUSTER_ADMIN_TOKEN.',
        querystring: TokenQuery,
        response: { 200: countedPageOf(NamedToken) },
      }),
      async ({ query: { q: search, sort, order, ...page } }) => ({
        ...presentPage(await listNamedTokens(db, { ...page, search, sort, isDescending: order === 'desc' }), presentToken),
        total: await countNamedTokens(db, { search }),
      }),
    );

    api.post(
      '/tokens',
      admin('createToken', 'Make a token with a name and a role', {
        description:
          'viewer reads; operator syncs, cancels, pauses, resumes, decides on holds and makes connect links, too; admin may do everything.',
        body: NewToken,
        response: { 201: CreatedToken },
        problems: ['token_name_taken'],
      }),
      async ({ caller: by, body: { name, role, expires_at: expiresAt } }, reply) => {
        const token = newToken();
        registerSecret(token);
        const details = { name, role, expires_at: expiresAt?.toISOString() };
        const entry = { by, action: 'token.create', details } as const;
        const row = { name, role, expiresAt, tokenHash: tokenHash(token), createdBy: by.name };
        const id = await auditedRefusal(db, entry, () =>
          inTransaction(db, async (tx) => {
            const inserted = await insertNamedToken(tx, row);
            await recordDone(tx, { ...entry, details: { token_id: inserted, ...details } });
            return inserted;
          }),
        );
        return reply.code(201).send({ id, name, role, token, expires_at: presentTime(expiresAt) });
      },
    );

    api.delete(
      '/tokens/:id',
      admin('deleteToken', 'Delete a named token', {
        description: 'It is refused from now on; other processes that serve the API may take it for a second more.',
        params: IdParams,
        response: { 204: z.undefined() },
        problems: ['token_not_found'],
      }),
      async ({ caller: by, params: { id } }, reply) => {
        const entry = { by, action: 'token.delete', details: { token_id: id } } as const;
        await auditedRefusal(db, entry, () =>
          inTransaction(db, async (tx) => {
            const name = await revokeNamedToken(tx, { id });
            await recordDone(tx, { ...entry, details: { token_id: id, name } });
          }),
        );
        authenticator.forget();
        return reply.code(204).send();
      },
    );
  };
}

function presentToken({ id, name, role, createdAt, createdBy, expiresAt, lastUsedAt }: NamedTokenRow): NamedTokenModel {
  return {
    id,
    name,
    role,
    created_at: createdAt.toISOString(),
    created_by: createdBy,
    expires_at: presentTime(expiresAt),
    last_used_at: presentTime(lastUsedAt),
  };
}
