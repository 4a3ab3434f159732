// The messages of the game, for the server and the bot.
export const proto = `
syntax = "proto3";
package game;

message Vector {
  float x = 1;
  float y = 2;
}
message Login {
  uint32 id = 1;
  string token = 2;
}
message Move {
  uint32 seq = 1;
  Vector to = 2;
  bytes input = 3;
  uint64 at_us = 4;
}
message FromClient {
  oneof kind {
    Login login = 1;
    Move move = 2;
  }
}

message Welcome {
  uint32 room = 1;
}
message Ack {
  uint32 seq = 1;
  Vector at = 2;
  bytes input = 3;
  uint64 at_us = 4;
}
message Player {
  uint32 id = 1;
  Vector at = 2;
}
message Snapshot {
  uint32 tick = 1;
  repeated Player players = 2;
}
message FromServer {
  oneof kind {
    Welcome welcome = 1;
    Ack ack = 2;
    Snapshot snapshot = 3;
  }
}
`;
