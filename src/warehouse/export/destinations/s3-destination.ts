import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import { MusterError } from '../../../core/errors.js';
import { Proxies } from '../../../http/proxy/proxies.js';
import { ProxyFailure } from '../../../http/proxy/tunnel.js';
import { type Destination, type DestinationKind, MANIFEST_SUFFIX, SIGNED_MANIFEST_SUFFIX } from './destination.js';
import { agentsThrough, useForwardingProxy } from './s3-proxy.js';

const OBJECT = /^s3:\/\/([^/]+)\/(.+)$/;
const FOLDER = /^s3:\/\/[a-z0-9][a-z0-9.-]*[a-z0-9](\/[^/]+)*\/*$/;

/** S3 takes 10,000 parts: 80 GB. Two are under way at once, which is most of what an upload takes of memory. */
const PARTS = { partSize: 8 << 20, queueSize: 2 };

export const s3Kind: DestinationKind = {
  scheme: 's3://',
  fileAddress: 's3://bucket/key',
  folderAddress: 's3://bucket/prefix',
  help: 'writes to S3, by the variables that programs for AWS read (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL_S3, …).',
  folderFrom: (text) => (FOLDER.test(text) ? text.replace(/\/+$/, '') : undefined),
  open: openS3Destination,
};

/**
 * Uploads an object in parts; it appears once the last part is there. The SDK takes credentials, region and server from the variables and
 * files that all programs for AWS read. Throws `invalid_configuration` for an address that names no object, and where the packages for S3 are missing.
 */
export async function openS3Destination(
  output: string,
  { proxies = new Proxies() }: { readonly proxies?: Proxies | undefined },
): Promise<Destination> {
  const [, bucket, key] = OBJECT.exec(output) ?? [];
  if (bucket === undefined || key === undefined || key.endsWith('/')) {
    throw new MusterError(
      'invalid_configuration',
      `${output} names no object: it must be like s3://bucket/folder/employees.parquet.`,
    );
  }
  const [{ S3Client, PutObjectCommand, DeleteObjectCommand }, { Upload }] = await packages();
  const client: S3Client = new S3Client({
    // Servers other than Amazon's know buckets by the path of an address, and checksums only where they must.
    ...((process.env['AWS_ENDPOINT_URL_S3'] || process.env['AWS_ENDPOINT_URL']) && {
      forcePathStyle: true,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    }),
    ...(proxies.areSet && { requestHandler: agentsThrough(proxies) }),
  });
  if (proxies.areSet) useForwardingProxy(client, proxies);
  const body = new PassThrough();
  const upload = new Upload({ client, params: { Bucket: bucket, Key: key, Body: body }, ...PARTS });
  const uploaded = withS3Errors(output, upload.done());
  // `write` and `finish` report a failure; until they are called, nothing listens.
  uploaded.catch(() => {});
  const failure = new Promise<never>((_, reject) => void uploaded.catch(reject));
  failure.catch(() => {});
  const putText = (suffix: string, text: string, type: string) =>
    withS3Errors(
      output,
      client.send(new PutObjectCommand({ Bucket: bucket, Key: `${key}${suffix}`, Body: text, ContentType: type })),
    );
  return {
    name: key.split('/').at(-1),
    write: async (bytes) => {
      // A copy: the upload gathers what it is given into parts.
      if (!body.write(Buffer.from(bytes))) await Promise.race([once(body, 'drain'), failure]);
    },
    finish: async ({ text, signed }) => {
      const suffixes = [MANIFEST_SUFFIX, ...(signed === undefined ? [] : [SIGNED_MANIFEST_SUFFIX])];
      if (signed !== undefined) await Promise.race([putText(SIGNED_MANIFEST_SUFFIX, signed, 'application/jose'), failure]);
      await Promise.race([putText(MANIFEST_SUFFIX, text, 'application/json'), failure]);
      body.end();
      try {
        await uploaded;
      } catch (error) {
        // Without the object, its manifests describe nothing.
        for (const suffix of suffixes)
          await client.send(new DeleteObjectCommand({ Bucket: bucket, Key: `${key}${suffix}` })).catch(() => {});
        throw error;
      }
      client.destroy();
    },
    abort: async () => {
      // The body's error makes the upload give up its parts, which its own abort() does not wait for.
      body.destroy(new Error('The export was given up.'));
      await uploaded.catch(() => {});
      client.destroy();
    },
  };
}

/** The packages are large, and nothing else needs them. */
async function packages() {
  try {
    return await Promise.all([import('@aws-sdk/client-s3'), import('@aws-sdk/lib-storage')]);
  } catch (cause) {
    throw new MusterError(
      'invalid_configuration',
      'Exports to S3 need two packages that are not installed: `npm install @aws-sdk/client-s3 @aws-sdk/lib-storage` in the folder of Muster.',
      { cause },
    );
  }
}

async function withS3Errors<T>(output: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const { name } = error as Error;
    const why = error instanceof ProxyFailure ? error.message : name;
    throw new MusterError(
      'export_failed',
      `${output} cannot be written (${why}). ${ADVICE[name] ?? ''}What stood there stays as it was.`,
      {
        cause: error,
      },
    );
  }
}

const CREDENTIALS = 'Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, or AWS_PROFILE. ';

const ADVICE: Readonly<Record<string, string>> = {
  CredentialsProviderError: CREDENTIALS,
  InvalidAccessKeyId: CREDENTIALS,
  SignatureDoesNotMatch: CREDENTIALS,
  AccessDenied: 'The credentials must be allowed s3:PutObject and s3:AbortMultipartUpload there. ',
  NoSuchBucket: 'Make the bucket first, or see that AWS_REGION is its region. ',
  TimeoutError: 'See that AWS_ENDPOINT_URL_S3 and AWS_REGION are right, and try again. ',
};
