import type { IssueModel } from '../../src/api/operation/issues.js';
import { type Outcome, runMuster } from '../cli/run-muster.js';
import { Receiver } from '../notifications/receiver.js';
import type { TestProcess } from '../support/process.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

export interface WatchedDeploymentOptions {
  readonly redisUrl?: string | undefined;
  readonly env?: Record<string, string>;
  /** Of the worker alone. */
  readonly workerEnv?: Record<string, string>;
}

/** An API and a worker with one company that is synced, a webhook that hears of it, and a person who looks at issues and commands. */
export class WatchedDeployment {
  private constructor(
    readonly receiver: Receiver,
    readonly deployment: Deployment,
    readonly processes: TestProcess[],
    readonly companyId: string,
  ) {}

  static async open({ redisUrl, env, workerEnv }: WatchedDeploymentOptions = {}): Promise<WatchedDeployment> {
    const receiver = await Receiver.start();
    const deployment = await Deployment.open({
      redisUrl,
      sandbox: { companies: [{ name: 'Brattskjær AS', employees: 40 }] },
      env: { NOTIFY_WEBHOOK_URL: receiver.url.href, NOTIFY_WEBHOOK_SECRET: 'a-secret-for-signing', LOG_LEVEL: 'trace', ...env },
    });
    deployment.env['PUBLIC_URL'] = deployment.url;
    const processes = [await deployment.startApi(), await deployment.startWorker(workerEnv)];
    const { companyId } = deployment.sandbox.companies[0]!;
    await deployment.onboard(companyId);
    await deployment.runEnd(companyId);
    return new WatchedDeployment(receiver, deployment, processes, companyId);
  }

  async close(): Promise<void> {
    for (const running of this.processes) running.kill('SIGTERM');
    await Promise.all(this.processes.map(({ exit }) => exit));
    await this.deployment.close();
    await this.receiver.goDown();
  }

  /** The newest event of an issue of this status, once the webhook has heard of so many. */
  told(status: string, count = 1) {
    return waitFor(
      () => {
        const events = this.receiver.received.map(({ event }) => event).filter((event) => event.issue_status === status);
        return events.length >= count ? events.at(-1) : undefined;
      },
      { what: `an issue to be ${status}` },
    );
  }

  async issues(status: string): Promise<IssueModel[]> {
    return ((await this.deployment.call('GET', `/api/issues?status=${status}`)).body as { data: IssueModel[] }).data;
  }

  /** Resolves when the issue of this cause has the status. */
  issue(cause: string, status: string): Promise<IssueModel> {
    return waitFor(async () => (await this.issues(status)).find((issue) => issue.cause === cause), {
      what: `${cause} to be ${status}`,
    });
  }

  command(...args: readonly string[]): Promise<Outcome> {
    const { url, env, adminToken } = this.deployment;
    const address = args[0] === 'doctor' ? [] : ['--url', url];
    return runMuster([...args, ...address], { ...env, MUSTER_ADMIN_TOKEN: adminToken });
  }

  /** How the company's next run ends. */
  async sync(): Promise<string> {
    await this.deployment.call('POST', `/api/companies/test/${this.companyId}/sync`, { mode: 'full' });
    return (await this.deployment.runEnd(this.companyId)).status;
  }
}
