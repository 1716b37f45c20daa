import { z } from 'zod';
import type { Catalogue } from '../../catalogue/endpoint.js';
import { keyText } from '../../core/company.js';
import type { Database } from '../../db/connection/database.js';
import type { ConnectionRow } from '../../db/tables/connections.js';
import { findListStates, LIST_STATES, type ListWithState } from '../../db/tables/list-states.js';
import type { ConnectLinks } from '../../oauth/connect-links.js';
import { Count, EnvironmentName, presentTime, Time } from '../plumbing/models.js';
import { describeTokenRefusal } from './token-refusals.js';

export const CompanyStatusName = z.enum(['active', 'reauthorization_required', 'paused']);
export const ListStateName = z.enum(LIST_STATES);

export const Company = z
  .object({
    environment: EnvironmentName,
    company_id: z.string(),
    name: z.string().nullable(),
    status: CompanyStatusName,
    paused: z
      .boolean()
      .meta({ description: 'Whether a person has paused it; a company that must authorize again is not synced either way.' }),
    reauthorization_reason: z.string().optional().meta({ description: 'docs/errors.md says what each means.' }),
    grant: z.object({ number: Count, authorized_at: Time }).meta({
      description:
        'Under which authorization it is read, and since when. Another one by the same person is the same grant where the access tokens show so.',
    }),
    token: z.object({
      expires_at: Time.nullable(),
      refreshed_at: Time.nullable(),
      problem: z
        .string()
        .optional()
        .meta({ description: 'Why the last refresh was not granted: status and error code that the token endpoint answered.' }),
      retry_at: Time.optional().meta({ description: 'When the refresh that was not granted is tried again.' }),
    }),
    resources: z
      .array(
        z.object({
          resource: z.string(),
          records: Count.meta({ description: 'Living records in the mirror.' }),
          last_verified_at: Time.nullable().meta({ description: 'Start of the last pass that was proved complete.' }),
          last_run_id: z.string().nullable(),
          state: ListStateName.meta({
            description:
              'The first that applies: the company does not have the list, its newest walk failed, a hold is open, it was never proved, its last proof is too old, none of these.',
          }),
          since: Time.nullable().meta({ description: 'Since when it is in this state; of `on_time`, when it was proved last.' }),
          reason: z.string().optional().meta({
            description: 'The code of the error, the cause of the hold, or why the newest walk proved nothing.',
          }),
          service_says: z.string().optional().meta({
            description: "The service's own sentence where it refuses the list: at most 300 characters from outside, as text.",
          }),
        }),
      )
      .meta({ description: 'The lists of the catalogue that were asked for at least once.' }),
    next_sync_at: Time.nullable(),
    authorize_url: z.string().optional().meta({ description: 'Where to authorize again, when that is required.' }),
  })
  .meta({ id: 'Company', description: 'An onboarded company and how fresh its mirror is.' });
export type CompanyModel = z.output<typeof Company>;

/** `lists` are the company's lists of the catalogue; `authorizeUrl` is there where the company must authorize again. */
export function presentCompany(
  connection: ConnectionRow,
  { lists, authorizeUrl }: { readonly lists: readonly ListWithState[]; readonly authorizeUrl: string | undefined },
): CompanyModel {
  const { environment, companyId, name, status, paused, reauthorizationReason, expiresAt, refreshedAt, nextSyncAt } = connection;
  const { grantNumber, authorizedAt, retryAt } = connection;
  const problem = describeTokenRefusal(connection);
  const blocked = status === 'reauthorization_required';
  return {
    environment,
    company_id: companyId,
    name,
    status,
    paused,
    ...(blocked && reauthorizationReason && { reauthorization_reason: reauthorizationReason }),
    grant: { number: grantNumber, authorized_at: authorizedAt.toISOString() },
    token: {
      expires_at: presentTime(expiresAt),
      refreshed_at: presentTime(refreshedAt),
      ...(problem !== undefined && { problem }),
      ...(retryAt !== null && { retry_at: retryAt.toISOString() }),
    },
    resources: lists.map(({ resource, records, lastVerifiedAt, lastRunId, state, since, reason, serviceSays }) => ({
      resource,
      records,
      last_verified_at: presentTime(lastVerifiedAt),
      last_run_id: lastRunId,
      state,
      since: presentTime(since),
      ...(reason !== null && { reason }),
      ...(serviceSays !== null && { service_says: serviceSays }),
    })),
    next_sync_at: status === 'active' ? presentTime(nextSyncAt) : null,
    ...(authorizeUrl && { authorize_url: authorizeUrl }),
  };
}

/** The companies as the API shows them: their connections joined with what is known of their lists, in a handful of queries. */
export async function presentCompanies(
  {
    db,
    catalogue,
    connectLinks,
    staleAfterHours,
  }: {
    readonly db: Database;
    readonly staleAfterHours: number;
    readonly catalogue: Pick<Catalogue, 'endpoints'>;
    readonly connectLinks: Pick<ConnectLinks, 'reauthorizationLinks'>;
  },
  connections: readonly ConnectionRow[],
): Promise<CompanyModel[]> {
  const companyIds = connections.map(({ companyId }) => companyId);
  // A list that left the catalogue keeps its rows and is walked no more. Shown, its proof would look stale for ever.
  const resources = catalogue.endpoints.map(({ resource }) => resource);
  const blocked = connections.filter(({ status }) => status === 'reauthorization_required');
  const [lists, links] = await Promise.all([
    findListStates(db, { companyIds, resources, staleAfterHours }),
    connectLinks.reauthorizationLinks(blocked),
  ]);
  const listsOf = new Map<string, ListWithState[]>();
  for (const list of lists) listsOf.set(keyText(list), [...(listsOf.get(keyText(list)) ?? []), list]);
  return connections.map((connection) => {
    const own = keyText(connection);
    return presentCompany(connection, { lists: listsOf.get(own) ?? [], authorizeUrl: links.get(own)?.url });
  });
}
