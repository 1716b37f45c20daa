import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { anyPort } from '../support/port.js';
import { pythonEnvironment } from '../support/python-environment.js';
import { waitFor } from '../support/wait-for.js';

export const BUCKET = 'muster-exports';

export interface S3Server {
  /** What programs for AWS are told. */
  readonly env: Record<string, string>;
  /** As somebody who looks at what is there. */
  readonly client: S3Client;
  close(): Promise<void>;
}

/** Moto, the S3 that AWS's own clients are tried against, with an empty bucket. */
export async function startS3Server(): Promise<S3Server> {
  const programs = await pythonEnvironment(fileURLToPath(new URL('requirements.txt', import.meta.url)));
  const port = anyPort();
  const server = spawn(`${programs}/moto_server`, ['-H', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' });
  const env = {
    AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}`,
    AWS_ACCESS_KEY_ID: 'exporter',
    AWS_SECRET_ACCESS_KEY: 's3-secret-of-the-exporter',
    AWS_REGION: 'eu-north-1',
  };
  const client = new S3Client({
    endpoint: env.AWS_ENDPOINT_URL_S3,
    region: env.AWS_REGION,
    forcePathStyle: true,
    credentials: { accessKeyId: env.AWS_ACCESS_KEY_ID, secretAccessKey: env.AWS_SECRET_ACCESS_KEY },
  });
  await waitFor(() => fetch(env.AWS_ENDPOINT_URL_S3), { what: 'Moto to answer' });
  await client.send(new CreateBucketCommand({ Bucket: BUCKET, CreateBucketConfiguration: { LocationConstraint: 'eu-north-1' } }));
  return {
    env,
    client,
    close: async () => {
      client.destroy();
      const ended = once(server, 'exit');
      server.kill('SIGKILL');
      await ended;
    },
  };
}
