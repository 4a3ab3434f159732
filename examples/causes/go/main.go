// An HTTP/1.1 server whose limit has one planted cause: ./causes --port N --cause NAME
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// threadCPU is the CPU time of this thread; the caller has locked its goroutine to it.
func threadCPU() time.Duration {
	const clockThreadCPU = 3
	var at syscall.Timespec
	if _, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPU, uintptr(unsafe.Pointer(&at)), 0); failed != 0 {
		log.Fatal(failed)
	}
	return time.Duration(at.Nano())
}

var sink atomic.Uint32

// burn uses so much CPU time, however long that takes.
func burn(enough time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	word := uint32(1)
	for until := threadCPU() + enough; threadCPU() < until; {
		for step := uint32(0); step < 5000; step++ {
			word = word*31 + step
		}
	}
	sink.Store(word)
}

func nothing() {}

// oneWorker does all requests' work in one goroutine.
func oneWorker() func() {
	jobs := make(chan chan struct{})
	go func() {
		for done := range jobs {
			burn(time.Millisecond)
			close(done)
		}
	}()
	return func() {
		done := make(chan struct{})
		jobs <- done
		<-done
	}
}

// oneLock is one lock around something that is waited for; the CPU idles.
func oneLock() func() {
	var lock sync.Mutex
	return func() {
		lock.Lock()
		defer lock.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
}

// pauses stops all handlers for 300 ms every 2 s, when 100 requests or more have come since.
func pauses() func() {
	var index sync.RWMutex
	var changes atomic.Int64
	go func() {
		for range time.Tick(2 * time.Second) {
			if changes.Swap(0) >= 100 {
				rebuildIndex(&index)
			}
		}
	}()
	return func() {
		changes.Add(1)
		index.RLock()
		defer index.RUnlock()
	}
}

func rebuildIndex(index *sync.RWMutex) {
	index.Lock()
	defer index.Unlock()
	time.Sleep(300 * time.Millisecond)
}

// slowDisk writes for 10 ms to a log what must be on the disk, one request at a time. The file has no name.
func slowDisk() func() {
	file, err := os.CreateTemp("", "causes-")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Remove(file.Name()); err != nil {
		log.Fatal(err)
	}
	var lock sync.Mutex
	page := make([]byte, 4096)
	written := int64(0)
	return func() {
		lock.Lock()
		defer lock.Unlock()
		for until := time.Now().Add(10 * time.Millisecond); time.Now().Before(until); {
			if written == 64<<20 {
				if err := file.Truncate(0); err != nil {
					log.Fatal(err)
				}
				written = 0
			}
			if _, err := file.WriteAt(page, written); err != nil {
				log.Fatal(err)
			}
			written += 4096
			if err := file.Sync(); err != nil {
				log.Fatal(err)
			}
		}
	}
}

// slowAccept sleeps before each accept, behind a queue of two.
type slowAccept struct{ net.Listener }

func (listener slowAccept) Accept() (net.Conn, error) {
	time.Sleep(50 * time.Millisecond)
	return listener.Listener.Accept()
}

// atMost closes the 41st connection at once.
type atMost struct {
	net.Listener
	open *atomic.Int64
}

func (listener atMost) Accept() (net.Conn, error) {
	for {
		connection, err := listener.Listener.Accept()
		if err != nil || listener.open.Add(1) <= 40 {
			return connection, err
		}
		listener.open.Add(-1)
		connection.Close()
	}
}

func main() {
	port := flag.Int("port", 0, "port on 127.0.0.1")
	cause := flag.String("cause", "none", "the planted cause")
	profiles := flag.Int("pprof", 0, "port on 127.0.0.1 of /debug/pprof/, with its profiles of locks and waits switched on")
	flag.Parse()
	causes := map[string]func() func(){
		"none": nil, "single-thread": oneWorker, "cpu-bound": nil, "lock": oneLock, "pause": pauses,
		"accept-backlog": nil, "max-connections": nil, "fd-limit": nil, "slow-disk": slowDisk,
	}
	plant, known := causes[*cause]
	if !known || *port == 0 {
		log.Fatalf("usage: causes --port N --cause none|single-thread|cpu-bound|lock|pause|accept-backlog|max-connections|fd-limit|slow-disk")
	}
	work := nothing
	if plant != nil {
		work = plant()
	}
	if *cause == "cpu-bound" {
		work = func() { burn(2 * time.Millisecond) }
	}
	if *cause == "fd-limit" {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 64, Max: 64}); err != nil {
			log.Fatal(err)
		}
	}
	if *profiles != 0 {
		runtime.SetMutexProfileFraction(1)
		runtime.SetBlockProfileRate(1)
		go func() { log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *profiles), nil)) }()
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		work()
		response.Header().Set("Content-Type", "text/plain")
		io.WriteString(response, "well\n")
	})}
	switch *cause {
	case "accept-backlog":
		raw, err := listener.(*net.TCPListener).SyscallConn()
		if err != nil {
			log.Fatal(err)
		}
		// Listening again changes the length of the queue, which net.Listen does not let one choose.
		raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), 2) })
		if err != nil {
			log.Fatal(err)
		}
		listener = slowAccept{listener}
	case "max-connections":
		open := new(atomic.Int64)
		listener = atMost{listener, open}
		server.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				open.Add(-1)
			}
		}
	}
	fmt.Printf("listening on 127.0.0.1:%d\n", *port)
	log.Fatal(server.Serve(listener))
}
