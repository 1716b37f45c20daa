import type { Catalogue } from '../catalogue/endpoint.js';
import { keyText } from '../core/company.js';
import type { Database } from '../db/database.js';
import type { List } from '../generated/prisma/client.js';
import type { CompanyModel } from './models.js';
import type { ConnectionView, ConnectLinksPort } from './ports.js';

export interface CompanyModelSource {
  readonly db: Database;
  readonly catalogue: Catalogue;
  readonly connectLinks: ConnectLinksPort;
}

/** The companies as the API shows them: their connections joined with what is known of their lists, in a handful of queries. */
export async function presentCompanies(
  source: CompanyModelSource,
  connections: readonly ConnectionView[],
): Promise<CompanyModel[]> {
  const companyIds = connections.map(({ companyId }) => companyId);
  // A list that left the catalogue keeps its rows, and is walked no more: its proof would count as stale for ever.
  const resource = { in: source.catalogue.endpoints.map((endpoint) => endpoint.resource) };
  const blocked = connections.filter(({ status }) => status === 'reauthorization_required');
  const [lists, authorizeUrls] = await Promise.all([
    source.db.prisma.list.findMany({ where: { companyId: { in: companyIds }, resource }, orderBy: { resource: 'asc' } }),
    source.connectLinks.reauthorizationUrls(blocked),
  ]);
  const listsOf = new Map<string, List[]>();
  for (const list of lists) listsOf.set(keyText(list), [...(listsOf.get(keyText(list)) ?? []), list]);
  return connections.map((connection) => {
    const own = keyText(connection);
    return present(connection, { lists: listsOf.get(own) ?? [], authorizeUrl: authorizeUrls.get(own) });
  });
}

/** What is known of a company beside its connection. */
interface Surroundings {
  readonly lists: readonly List[];
  readonly authorizeUrl: string | undefined;
}

function present(connection: ConnectionView, { lists, authorizeUrl }: Surroundings): CompanyModel {
  const { environment, companyId, name, status, paused, reauthorizationReason, token, nextSyncAt } = connection;
  const blocked = status === 'reauthorization_required';
  return {
    environment,
    company_id: companyId,
    name,
    status,
    paused,
    ...(blocked && reauthorizationReason && { reauthorization_reason: reauthorizationReason }),
    token: { expires_at: iso(token.expiresAt), refreshed_at: iso(token.refreshedAt) },
    resources: lists.map(({ resource, records, lastVerifiedAt, lastRunId }) => ({
      resource,
      records,
      last_verified_at: iso(lastVerifiedAt),
      last_run_id: lastRunId,
    })),
    next_sync_at: status === 'active' ? iso(nextSyncAt) : null,
    ...(authorizeUrl && { authorize_url: authorizeUrl }),
  };
}

function iso(date: Date | null | undefined): string | null {
  return date?.toISOString() ?? null;
}
