import type { Command } from 'commander';
import type { CompanyModel } from '../../api/companies/company-model.js';
import type { ResourceModel } from '../../api/feed/resources.js';
import { parseCompanyId } from '../../core/company.js';
import { nearestName } from '../../core/nearest-name.js';
import { UsageFailure } from '../exit-code.js';
import { type AdminClient, openAdminClient } from './admin-client.js';

/** How many companies a message names. */
const NAMED = 10;

/** Enough for a company whose whole name is also a part of many others. */
const MOST_CANDIDATES = 500;

/**
 * Runs before the action of every operator command: puts the id and the environment of a company in place of its name or the beginning of its
 * id, and refuses lists that Muster does not know. An API that filters by an unknown name would answer with nothing, which looks like a list
 * without rows.
 */
export async function resolveNames(command: Command): Promise<void> {
  const { company, environment, resource, resources, url } = command.opts<{
    company?: string;
    environment?: string;
    resource?: string | readonly string[];
    resources?: readonly string[];
    url?: string;
  }>();
  const lists = [resource ?? [], resources ?? []].flat();
  // In a list the company is a filter, which may mean both environments; elsewhere it is the one company that the command acts on.
  const isFilter = command.name() === 'list' || command.options.some(({ long }) => long === '--limit');
  const asksForCompany =
    company !== undefined && (parseCompanyId(company) === undefined || (environment === undefined && !isFilter));
  if (lists.length === 0 && !asksForCompany) return;
  const client = openAdminClient({ url });
  if (lists.length > 0) await checkResources(client, lists);
  if (!asksForCompany) return;
  const found = await findCompany(client, company, { environment, isFilter });
  command.setOptionValue('company', found.companyId);
  if (found.environment !== undefined) command.setOptionValue('environment', found.environment);
}

/** Throws for a list that Muster does not know; the message names those that there are, and the nearest. */
export async function checkResources(client: AdminClient, names: readonly string[]): Promise<void> {
  const { data } = await client.get<{ data: ResourceModel[] }>('/api/resources');
  const known = data.map(({ resource }) => resource);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const meant = nearestName(unknown, known);
  throw new UsageFailure(
    `There is no list ${JSON.stringify(unknown)}.${meant === undefined ? '' : ` Did you mean ${meant}?`} There are: ${known.join(', ')}.`,
  );
}

interface FoundCompany {
  readonly companyId: string;
  /** Undefined: the filter means both environments. */
  readonly environment: string | undefined;
}

/**
 * The one company with this text in its name, or at the beginning of its id. A company whose whole name is the text wins over others that
 * merely contain it. A filter may mean one company in both environments.
 */
export async function findCompany(
  client: AdminClient,
  text: string,
  { environment, isFilter = false }: { readonly environment: string | undefined; readonly isFilter?: boolean },
): Promise<FoundCompany> {
  const found = await client.list<CompanyModel>('/api/companies', { q: text, environment, limit: MOST_CANDIDATES });
  return chooseCompany(found, text, { environment, isFilter });
}

type Candidate = Readonly<Pick<CompanyModel, 'environment' | 'company_id' | 'name'>>;

/** The one company that the text means, among those that have it in their name or at the beginning of their id. */
export function chooseCompany(
  found: readonly Candidate[],
  text: string,
  { environment, isFilter }: { readonly environment: string | undefined; readonly isFilter: boolean },
): FoundCompany {
  const same = found.filter(({ name, company_id }) => company_id === text || isSame(name ?? '', text));
  const candidates = same.length > 0 ? same : found;
  const [first] = candidates;
  if (first === undefined) throw new UsageFailure(noCompany(text, environment));
  if (candidates.length === 1) return { companyId: first.company_id, environment: first.environment };
  if (isFilter && candidates.every(({ company_id }) => company_id === first.company_id))
    return { companyId: first.company_id, environment };
  throw new UsageFailure(ambiguous(text, candidates));
}

/** Compares names without case and diacritics. */
function isSame(a: string, b: string): boolean {
  return a.trim().localeCompare(b.trim(), undefined, { sensitivity: 'base' }) === 0;
}

function noCompany(text: string, environment: string | undefined): string {
  const where = environment === undefined ? '' : ` in ${environment}`;
  return `No company${where} has ${JSON.stringify(text)} in its name, or at the beginning of its company_id: \`muster companies\` lists them.`;
}

function ambiguous(text: string, candidates: readonly Candidate[]): string {
  const isOneId = new Set(candidates.map(({ company_id }) => company_id)).size === 1;
  const heading = isOneId
    ? `${JSON.stringify(text)} is in both environments: name one with --environment.`
    : `${JSON.stringify(text)} may mean ${candidates.length < MOST_CANDIDATES ? candidates.length : `${MOST_CANDIDATES} or more`} companies: give more of the name, or the company_id.`;
  const lines = candidates
    .slice(0, NAMED)
    .map(({ environment, company_id, name }) => `  ${environment}  ${company_id}${name ? `  ${name}` : ''}`);
  const more = candidates.length > NAMED ? [`  and ${candidates.length - NAMED} more`] : [];
  return [heading, ...lines, ...more].join('\n');
}
