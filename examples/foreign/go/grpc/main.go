// grpc-go that ends each connection after 2 s (MaxConnectionAge, give or take a tenth), as is usual behind a load balancer: it sends
// GOAWAY(NO_ERROR) and lets the calls under way end. The age is the one setting here that is no default.
package main

import (
	"context"
	"log"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/examples/helloworld/helloworld"
	"google.golang.org/grpc/keepalive"
)

type greeter struct {
	helloworld.UnimplementedGreeterServer
}

func (greeter) SayHello(_ context.Context, request *helloworld.HelloRequest) (*helloworld.HelloReply, error) {
	return &helloworld.HelloReply{Message: "Hello " + request.GetName()}, nil
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 2 * time.Second}))
	helloworld.RegisterGreeterServer(server, greeter{})
	log.Fatal(server.Serve(listener))
}
