import type { Command } from 'commander';
import type { RunModel } from '../../api/runs/run-model.js';
import { ENVIRONMENTS, parseCompanyId } from '../../core/company.js';
import { CommandFailure, UsageFailure } from '../exit-code.js';
import { openAdminClient } from './admin-client.js';
import { type CompanyOptions, companyOption, companyPath, environmentOption, operatorCommand } from './operator-command.js';
import { printRun } from './runs.js';
import { waitForEnd } from './sync.js';

interface VerifyOptions extends Partial<CompanyOptions> {
  readonly resource?: readonly string[];
  readonly wait?: boolean;
}

export function registerVerify(program: Command): void {
  operatorCommand(program, 'verify', 'compare the service with the mirror of a company, and change nothing')
    .argument('[environment]', 'environment of the service')
    .argument('[company_id]', 'GUID of the company')
    .addOption(environmentOption())
    .addOption(companyOption())
    .option('--resource <name>', 'only this list; may be given several times', (name, names: string[] | undefined) => [
      ...(names ?? []),
      name,
    ])
    .option('--wait', 'wait until the run has ended; exit code 1 when it finds anything, or did not succeed')
    .action(async (environment: string | undefined, company: string | undefined, options: VerifyOptions) => {
      const client = openAdminClient(options);
      const path = companyPath(namedCompany(environment, company, options));
      let { run } = await client.post<{ run: RunModel }>(`${path}/verify`, { resources: options.resource });
      if (options.wait) run = await waitForEnd(client, run);
      await printRun(client, run, options);
      if (!options.wait) return;
      if (run.status !== 'succeeded')
        throw new CommandFailure(`The run ${run.status === 'failed' ? 'failed' : 'was cancelled'}.`);
      const faults = run.walks.reduce((sum, { verify }) => sum + faultsOf(verify), 0);
      const contradicted = run.walks.filter(({ verify }) => verify?.contradiction !== undefined);
      if (contradicted.length > 0)
        throw new CommandFailure(
          `${contradicted.map(({ resource }) => resource).join(', ')} may not end where a walk took it to end: see docs/verification.md, Where a list ends.`,
        );
      if (faults > 0)
        throw new CommandFailure(`The mirror has ${faults} ${faults === 1 ? 'fault' : 'faults'}: a full resync mends them.`);
    });
}

function faultsOf(found: RunModel['walks'][number]['verify']): number {
  return found ? found.missing + found.extra + found.different : 0;
}

function namedCompany(named: string | undefined, company: string | undefined, options: VerifyOptions) {
  const environment = ENVIRONMENTS.find((each) => each === (named ?? options.environment));
  if (environment === undefined) throw new UsageFailure('Name the environment, production or test, and behind it the company.');
  const companyId = parseCompanyId(company ?? options.company ?? '');
  if (companyId === undefined) throw new UsageFailure('Name the company by its GUID, behind the environment.');
  return { environment, company: companyId };
}
