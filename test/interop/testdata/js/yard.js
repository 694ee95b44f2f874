// What the scripts share: where the yard is, and how they say what they proved.
"use strict";
const assert = require("node:assert/strict");
const crypto = require("node:crypto");

// Milliseconds to wait for what must come; far more than any of it takes.
const LIMIT = 60_000;

// Keys and the partition of four that Azure's hash puts them in.
const KEYS = { 7: "3", 131: "2", FWfAT: "1", $0cb: "1", "!c*_!I@1^c": "0", abcdefghijkl: "1", 日本語: "1" };

function options() {
  // After retries the library throws its errors nested in one another, without a text.
  const found = { retryOptions: { maxRetries: 0, timeoutInMs: 20_000 } };
  if (process.env.YARD_WEBSOCKET) {
    found.webSocketOptions = { webSocket: require("ws") };
  }
  return found;
}

function parts(connection) {
  return Object.fromEntries(connection.split(";").map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)]));
}

// signed is the connection string with a signature made by hand in place of the key.
function signed(connection, seconds = 600) {
  const { Endpoint, SharedAccessKeyName, SharedAccessKey, ...rest } = parts(connection);
  const resource = encodeURIComponent(`${Endpoint}/${rest.EntityPath}`);
  const until = Math.floor(Date.now() / 1000) + seconds;
  const mac = crypto.createHmac("sha256", SharedAccessKey).update(`${resource}\n${until}`).digest("base64");
  const token = `SharedAccessSignature sr=${resource}&sig=${encodeURIComponent(mac)}&se=${until}&skn=${SharedAccessKeyName}`;
  return Object.entries({ Endpoint, SharedAccessSignature: token, ...rest }).map((pair) => pair.join("=")).join(";");
}

// Mailbox holds what callbacks bring until somebody asks for it.
class Mailbox {
  #waiting = [];
  #kept = [];

  put(item) {
    const taker = this.#waiting.shift();
    if (taker) taker(item);
    else this.#kept.push(item);
  }

  take(what, limit = LIMIT) {
    if (this.#kept.length > 0) return Promise.resolve(this.#kept.shift());
    return new Promise((resolve, reject) => {
      const taker = (item) => {
        clearTimeout(timer);
        resolve(item);
      };
      const timer = setTimeout(() => {
        this.#waiting = this.#waiting.filter((other) => other !== taker);
        reject(new Error(`waited in vain for ${what}`));
      }, limit);
      this.#waiting.push(taker);
    });
  }
}

function proved(text) {
  console.log("proved:", text);
}

async function refused(work, pattern) {
  await assert.rejects(work, (error) => {
    assert.match(`${error.code} ${error.message}`, pattern);
    return true;
  });
}

function run(steps) {
  (async () => {
    for (const step of steps) {
      console.log("---", step.name);
      await step();
    }
  })().then(
    () => process.exit(0),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
}

module.exports = {
  LIMIT, KEYS, Mailbox, options, parts, signed, proved, refused, run,
  connection: process.env.YARD_CONNECTION,
  listener: process.env.YARD_LISTENER,
  sender: process.env.YARD_SENDER,
  hub: parts(process.env.YARD_CONNECTION).EntityPath,
};
