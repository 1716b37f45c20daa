import type { Command } from 'commander';
import type { RunModel } from '../../api/runs/run-model.js';
import { ENVIRONMENTS, type Environment, parseCompanyId } from '../../core/company.js';
import { CommandFailure, UsageFailure } from '../exit-code.js';
import { type AdminClient, openAdminClient } from './admin-client.js';
import {
  type CompanyOptions,
  companyOption,
  companyPath,
  environmentOption,
  operatorCommand,
  resourceOption,
} from './operator-command.js';
import { findCompany } from './resolve-names.js';
import { printRun } from './runs.js';
import { requireSuccess } from './sync.js';
import { watchRun } from './watch-run.js';

interface VerifyOptions extends Partial<CompanyOptions> {
  readonly resource?: readonly string[];
  readonly wait?: boolean;
}

export function registerVerify(program: Command): void {
  operatorCommand(program, 'verify', 'compare the service with the mirror of a company; this changes nothing')
    .argument('[environment]', 'environment of the service')
    .argument('[company]', 'its name or a part of it, its company_id, or the beginning of that')
    .addOption(environmentOption())
    .addOption(companyOption())
    .addOption(
      resourceOption('only this list; you may repeat it').argParser((name, names: string[] | undefined) => [
        ...(names ?? []),
        name,
      ]),
    )
    .option('--wait', 'wait until the run has ended; exit code 1 if it finds a fault or did not succeed')
    .action(async (environment: string | undefined, company: string | undefined, options: VerifyOptions) => {
      const client = openAdminClient(options);
      const path = companyPath(await namedCompany(client, environment, company, options));
      let { run } = await client.post<{ run: RunModel }>(`${path}/verify`, { resources: options.resource });
      if (options.wait) run = await watchRun(client, run, options);
      await printRun(client, run, options);
      if (!options.wait) return;
      requireSuccess(run);
      const faults = run.walks.reduce((sum, { verify }) => sum + faultsOf(verify), 0);
      const contradicted = run.walks.filter(({ verify }) => verify?.contradiction !== undefined);
      if (contradicted.length > 0)
        throw new CommandFailure(
          `${contradicted.map(({ resource }) => resource).join(', ')} may go on after the end that a walk found: see docs/verification.md, Where a list ends.`,
        );
      if (faults > 0)
        throw new CommandFailure(`The mirror has ${faults} ${faults === 1 ? 'fault' : 'faults'}: a full resync repairs them.`);
    });
}

function faultsOf(found: RunModel['walks'][number]['verify']): number {
  return found ? found.missing + found.extra + found.different : 0;
}

/** The company that the options name, or the arguments: an environment and a company, or a company alone. */
async function namedCompany(
  client: AdminClient,
  first: string | undefined,
  second: string | undefined,
  options: VerifyOptions,
): Promise<Pick<CompanyOptions, 'environment' | 'company'>> {
  const named = ENVIRONMENTS.find((each) => each === first);
  const environment = named ?? options.environment;
  const text = options.company ?? (named === undefined ? first : second);
  if (text === undefined || (named === undefined && second !== undefined))
    throw new UsageFailure(
      'Name the company, with its environment before it if it is onboarded in both: muster verify test Acme.',
    );
  const companyId = parseCompanyId(text);
  if (companyId !== undefined && environment !== undefined) return { environment, company: companyId };
  const found = await findCompany(client, companyId ?? text.trim(), { environment });
  return { environment: found.environment as Environment, company: found.companyId };
}
