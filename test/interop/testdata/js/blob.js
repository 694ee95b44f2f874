// The official storage client for JavaScript with the yard's own blob endpoint: what it is
// used for besides checkpoints.  // P8
"use strict";
const assert = require("node:assert/strict");
const crypto = require("node:crypto");
const storage = require("@azure/storage-blob");
const { proved, run } = require("./yard");

const service = storage.BlobServiceClient.fromConnectionString(process.env.YARD_BLOBS);
const box = service.getContainerClient("js-" + crypto.randomUUID());

async function refused(code, promise) {
  await assert.rejects(promise, (err) => (err.code || err.details?.errorCode) === code, code);
}

async function containers() {
  assert.equal(await box.exists(), false);
  await box.create({ metadata: { purpose: "test" } });
  assert.equal(await box.exists(), true);
  await refused("ContainerAlreadyExists", box.create());
  const names = [];
  for await (const c of service.listContainers({ prefix: "js-", includeMetadata: true })) names.push(c.name);
  assert.ok(names.includes(box.containerName) || names.includes(box.url.split("/").pop()));
  proved("containers are made, found and listed");
}

async function blobs() {
  const blob = box.getBlockBlobClient("a folder/größe+1%.txt");
  const first = await blob.upload("hello", 5, { metadata: { OwnerId: "me", a_b: "1", ab: "2" }, blobHTTPHeaders: { blobContentType: "text/plain" } });
  const properties = await blob.getProperties();
  assert.deepEqual(properties.metadata, { ownerid: "me", a_b: "1", ab: "2" });
  assert.equal(properties.contentType, "text/plain");
  assert.equal((await blob.downloadToBuffer(1, 3)).toString(), "ell");
  await refused("ConditionNotMet", blob.setMetadata({}, { conditions: { ifMatch: '"0x1"' } }));
  await refused("BlobAlreadyExists", blob.upload("x", 1, { conditions: { ifNoneMatch: "*" } }));
  await blob.setMetadata({ next: "1" }, { conditions: { ifMatch: first.etag } });
  proved("a blob is written, read in part and changed on condition");

  const lease = blob.getBlobLeaseClient();
  await lease.acquireLease(15);
  await refused("LeaseIdMissing", blob.upload("x", 1));
  await blob.upload("x", 1, { conditions: { leaseId: lease.leaseId } });
  await lease.changeLease(crypto.randomUUID());
  await lease.renewLease();
  await lease.releaseLease();
  proved("a lease is acquired, kept to, changed, renewed and released");
}

async function large() {
  const body = crypto.randomBytes(9 * 1024 * 1024);
  const blob = box.getBlockBlobClient("large");
  await blob.uploadData(body, { blockSize: 1024 * 1024, maxSingleShotSize: 1024 * 1024, concurrency: 3 });
  assert.ok((await blob.downloadToBuffer()).equals(body));
  assert.equal((await blob.getBlockList("all")).committedBlocks.length, 9);
  proved("a large body goes up in blocks and comes down in ranges");
}

async function lists() {
  for (const name of ["list/1", "list/2", "list/sub/3"]) await box.getBlockBlobClient(name).upload("", 0, { metadata: { ownerid: "" } });
  const flat = [];
  for await (const page of box.listBlobsFlat({ prefix: "list/", includeMetadata: true }).byPage({ maxPageSize: 1 })) {
    for (const b of page.segment.blobItems) {
      assert.equal(b.metadata.ownerid, "");
      flat.push(b.name);
    }
  }
  assert.deepEqual(flat, ["list/1", "list/2", "list/sub/3"]);
  const tree = [];
  for await (const item of box.listBlobsByHierarchy("/", { prefix: "list/" })) tree.push(item.kind + " " + item.name);
  assert.deepEqual(tree.sort(), ["blob list/1", "blob list/2", "prefix list/sub/"]);
  proved("lists come in pages, flat and by folder");
}

async function signatures() {
  const name = box.url.split("/").pop();
  const query = storage.generateBlobSASQueryParameters(
    { containerName: name, permissions: storage.ContainerSASPermissions.parse("rl"), expiresOn: new Date(Date.now() + 3600e3) },
    service.credential,
  );
  const shared = new storage.ContainerClient(box.url + "?" + query);
  assert.equal((await shared.getBlobClient("large").getProperties()).contentLength, 9 * 1024 * 1024);
  await refused("AuthorizationPermissionMismatch", shared.getBlockBlobClient("large").upload("x", 1));
  const account = new storage.BlobServiceClient(
    service.generateAccountSasUrl(new Date(Date.now() + 3600e3), storage.AccountSASPermissions.parse("rwdlc"), "sco"),
  );
  for await (const page of account.listContainers().byPage()) assert.ok(page.containerItems.length > 0);
  proved("signatures of the account and of a container let in for what they say");
}

async function removal() {
  await box.delete();
  assert.equal(await box.exists(), false);
}

run([containers, blobs, large, lists, signatures, removal]);
